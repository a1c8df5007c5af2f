"""A whole round on the toy hall, small enough for a test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_policy import DOORS, TEXTS, HallEnv, hall_tasks
from torch.optim import AdamW
from toy_teacher import teach

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.learning.checkpoints import Checkpoints, write_state
from hgrpo.learning.critic import Critic, value_head
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.round import Round, RoundId
from hgrpo.learning.settings import KlConfig, TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.trajectories import store

TURN_CAP = 2
_TIMINGS = {"collect_s", "credit_s", "update_s", "elapsed_s", "collapse_s"}
TRAINING = TrainingConfig(
    steps_per_round=6,
    tasks_per_step=12,
    rollouts_per_task=8,
    max_action_tokens=4,
    lr=3e-3,
    warmup_steps=1,
    kl=KlConfig(init=0.01),
)


def imitate_random_doors(policy: Policy) -> None:
    """Teach the policy to open doors, any of them."""

    def game(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
        for door in rng.choice(DOORS, TURN_CAP):
            yield f"open {door}", f"The {door} is empty."

    teach(policy, TEXTS[0], game, "toy-expert", epochs=8)


def make_round(policy: Policy, reference: Path, scratch: Path, index: int = 1) -> Round:
    """Round `index` of Progressive on halls whose coin is always behind door 2."""
    conversation = Conversation(policy.tokenizer)
    engine = TorchEngine(policy, 32, Sampling(1.0, TRAINING.max_action_tokens))
    policy.load_reference(reference)
    optimiser = AdamW([parameter for _, parameter in policy.trainable], lr=TRAINING.lr)
    method = MethodConfig(name="Progressive", credit=CreditConfig(kind="progress"), alpha=0.5)
    return Round(
        RoundId(method, seed=1, index=index),
        panel=[task for task in hall_tasks(90) if task.task_id.endswith("2")],
        learner=Learner(policy, optimiser, TRAINING.kl.init, TRAINING, None),
        collector=Collector(engine, conversation, HallEnv, TURN_CAP, TRAINING.max_action_tokens),
        assigner=make_assigner(method.credit, Context()),
        checkpoints=Checkpoints(scratch),
    )


FLAT = MethodConfig(name="flatGRPO")
PPO = MethodConfig(name="PPO", advantage="gae")
_SMALL = {"steps_per_round": 3, "tasks_per_step": 4, "rollouts_per_task": 4}


def small_round(
    imitator: tuple[ModelConfig, Path, Path],
    scratch: Path,
    method: MethodConfig = FLAT,
    index: int = 1,
    **changes: object,
) -> Round:
    """A round on halls whose coins are anywhere; `changes` are settings of its training."""
    config, base, sft = imitator
    scratch.mkdir(exist_ok=True)
    play = make_round(load_policy(config, base, sft), sft, scratch)
    play.id = RoundId(method, seed=1, index=index)
    play.assigner = make_assigner(method.credit, Context())
    play.panel = hall_tasks(60)
    training = play.learner.training = TRAINING.model_copy(update=_SMALL | changes)
    play.learner.kl_coefficient = training.kl.init
    if method.uses_critic:
        body = load_policy(config, base, sft)
        head = value_head(body)
        optimiser = AdamW([*(p for _, p in body.trainable), *head.parameters()], lr=1e-3)
        play.learner.critic = Critic(body, head, optimiser, training.critic, 4096, None)
    return play


def run(play: Round) -> list[dict]:
    """The log rows of the whole round."""
    return play.run(lambda row: None, lambda: None)


def turns_of(play: Round) -> pd.DataFrame:
    """The turns of all steps."""
    folder = play.checkpoints.folder
    store.join_steps(folder, len(play.rows), folder)
    return store.read_turns(folder / "turns.parquet").to_pandas()


class KillError(Exception):
    """Ends a round as a kill would."""


def check_resume(whole: Round, make: Callable[[Path], Round], scratch: Path, kill_at: int) -> None:
    """Check that a round killed at a trajectory and resumed equals `whole`, to the byte."""
    finished = 0

    def kill() -> None:
        nonlocal finished
        finished += 1
        if finished == kill_at:
            raise KillError

    with pytest.raises(KillError):
        make(scratch).run(lambda row: None, kill)
    resumed = make(scratch)
    assert untimed(run(resumed)) == untimed(whole.rows)
    assert resumed.learner.stop == whole.learner.stop
    content = []
    for play in (whole, resumed):
        folder = play.checkpoints.folder
        store.join_steps(folder, len(play.rows), folder)
        write_state(play.learner.state(), folder / "trainer_state.pt")
        names = ("turns.parquet", "sequences.parquet", "trainer_state.pt")
        content.append([(folder / name).read_bytes() for name in names])
    assert content[0] == content[1]


def untimed(rows: list[dict]) -> list[dict]:
    """Log rows without what two equal runs do not share."""
    return [{k: v for k, v in row.items() if k not in _TIMINGS} for row in rows]
