"""Every credit assigner, and truth by continuations, on Sokoban with a tiny policy."""

from pathlib import Path

import numpy as np
import pytest
from sokoban_levels import panels, world
from toy_teacher import teach

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.base_model.make import build_tiny
from hgrpo.base_model.settings import TinyModel
from hgrpo.config.read import read_yaml
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.turnrd.model import build_model, save_model
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.errors import UserError
from hgrpo.evaluation.shared_rollouts import computations
from hgrpo.games.kinds import load
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.continuations import Continuations, Point
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine

CREDIT = {
    path.stem: read_yaml(path).get("credit", {"kind": "flat"})
    for path in sorted(Path("configs/methods").glob("*.yaml"))
}
SETTINGS = world(
    levels={"generate": {"lengths": [1, 3]}}, panels={"train": 6, "validation": 3, "test": 3}
)
REPLIES = ("Up", "Down", "Left", "Right", "Up || Up", "Down || Left", "Right || Right", "hop")
K, MAX_TOKENS = 4, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sokoban")


@pytest.fixture(scope="module")
def tasks(folder):
    return panels(SETTINGS, folder)["train"]


@pytest.fixture(scope="module")
def policy(folder, tasks) -> Policy:
    """A policy that names actions at random, and sometimes what is none."""
    env = load("sokoban").factory(SETTINGS, folder)()
    opening = env.reset(tasks[0]).text

    def game(rng):
        env.reset(tasks[0])
        done = False
        while not done:
            reply = str(rng.choice(REPLIES))
            step = env.step(reply)
            yield reply, step.observation.text
            done = step.done

    rng = np.random.default_rng(0)
    texts = [env.reset(task).text for task in tasks] * 2 + list(REPLIES) * 2
    texts += [text for _ in range(20) for pair in game(rng) for text in pair]
    tiny = TinyModel(
        hidden_size=32, layers=2, heads=4, kv_heads=2, intermediate_size=48, max_vocab=500
    )
    config = ModelConfig(name="test", tiny=tiny, adapt="full", train_dtype="float32")
    tokenizer = train_tokenizer(texts, tiny.max_vocab, load("sokoban").cut)
    base = folder / "base"
    base.mkdir()
    tokenizer.save(str(base / "tokenizer.json"))
    Policy(build_tiny(tiny, tokenizer, seed=1), config, base).save_adapter(base)
    policy = load_policy(config, base)
    teach(policy, opening, game, "sokoban-teacher", epochs=2)
    return policy


@pytest.fixture(scope="module")
def collector(policy, folder) -> Collector:
    engine = TorchEngine(policy, 32, Sampling(1.0, MAX_TOKENS), embeddings=True)
    make_env = load("sokoban").factory(SETTINGS, folder)
    conversation = Conversation(policy.tokenizer)
    return Collector(engine, conversation, make_env, SETTINGS.turn_cap, MAX_TOKENS)


@pytest.fixture(scope="module")
def groups(collector, tasks):
    groups = collector.collect(tasks, K, ("train", 1, 1, 0))
    played = [trajectory for group in groups for trajectory in group]
    assert len({t.env_return for t in played}) > 3
    assert {t.success for t in played} == {True, False}
    assert {turn.admissible for t in played for turn in t.turns} == {True, False}
    return groups


def test_a_group_can_meet_in_the_same_situation(groups):
    states = [turn.state for trajectory in groups[0] for turn in trajectory.turns]
    assert 1 < len(set(states)) < len(states)


@pytest.mark.parametrize(
    "name", [n for n, credit in CREDIT.items() if credit["kind"] not in {"oracle", "exact"}]
)
def test_every_assigner_credits_every_turn(name, policy, collector, groups, tmp_path):
    config = computations({name: CreditConfig(**CREDIT[name])}, {})[0].credit
    fitted = None
    if config.kind == "turnrd":
        fitted, settings = tmp_path / "fitted", Settings(**config.settings)
        fitted.mkdir()
        width = policy.causal_lm.config.hidden_size
        save_model(build_model(settings.model, width, 3), settings.model, width, {}, fitted)
    conversation = Conversation(policy.tokenizer)
    context = Context("sokoban", policy, conversation, collector, tmp_path / "cache", fitted)
    assigner = make_assigner(config, context)
    for group in groups[:2]:
        stream = ("train", 1, 1, 0, group[0].task.task_id)
        credit = assigner.assign(Group(group, stream))
        assert [row.shape for row in credit] == [(len(t.turns),) for t in group]
        assert all(np.isfinite(row).all() for row in credit)


@pytest.mark.parametrize(("name", "lacks"), [("Oracle", "worths"), ("Exact", "exact_state")])
def test_oracle_and_exact_credit_name_what_sokoban_lacks(name, lacks, policy, collector, groups):
    context = Context("sokoban", policy, Conversation(policy.tokenizer), collector)
    assigner = make_assigner(CreditConfig(**CREDIT[name]), context)
    with pytest.raises(UserError, match=f"'sokoban': credit.kind .* requires `{lacks}`"):
        assigner.assign(Group(groups[0], ("stream",)))


def test_continuations_play_on_from_every_turn(collector, groups):
    points = [
        Point(trajectory, turn, ("truth", 1))
        for group in groups[:2]
        for trajectory in group
        for turn in range(len(trajectory.turns))
    ]
    continuations = Continuations(collector)
    returns = continuations.returns(points, 3)
    assert returns.shape == (len(points), 3)
    assert np.array_equal(returns, continuations.returns(points, 3))
    assert len(np.unique(returns)) > 3
    # Either solved, or lost at the price of the whole budget and more for what was not understood.
    assert np.all((returns > 8) | (returns <= -1 + 1e-9))
