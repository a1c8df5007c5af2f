"""A whole round on the toy hall, small enough for a test."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tiny_policy import DOORS, TEXTS, HallEnv, hall_tasks
from torch.optim import AdamW
from toy_teacher import teach

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, make_assigner
from hgrpo.credit.section import CreditConfig
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.kl import KlController
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.round import Round, RoundId
from hgrpo.learning.settings import KlConfig, TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.policy import Policy
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine

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
        learner=Learner(policy, optimiser, KlController(TRAINING.kl), TRAINING, None),
        collector=Collector(engine, conversation, HallEnv, TURN_CAP, TRAINING.max_action_tokens),
        assigner=make_assigner(method.credit, Context()),
        checkpoints=Checkpoints(scratch),
    )


class KillError(Exception):
    """Ends a round as a kill would."""


def untimed(rows: list[dict]) -> list[dict]:
    """Log rows without what two equal runs do not share."""
    return [{k: v for k, v in row.items() if k not in _TIMINGS} for row in rows]
