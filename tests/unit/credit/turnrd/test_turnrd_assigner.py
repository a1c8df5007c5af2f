"""TurnRD as an assigner: read-outs, the first round, cached rollouts, and policy gradients."""

import copy

import numpy as np
import pytest
import torch
from hall import collect, hall_collector
from one_update import TRAINING, gradient, rewarded
from tiny_policy import make_policy

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.turnrd.assigner import read_out, turn_embeddings, turn_ranges, uniform
from hgrpo.credit.turnrd.model import build_model, load_model, save_model
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.learning.batch import group_advantages, training_sequences
from hgrpo.learning.method import MethodConfig

MODEL = {"layers": 1, "hidden": 16, "heads": 2, "dropout": 0.0}
READOUTS = ("alpha_return", "projected_value", "value_baseline")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    policy = make_policy(folder)
    policy.load_reference(folder)
    return policy


def play(policy, capacity, embeddings=True):
    return rewarded(collect(policy, capacity, embeddings=embeddings))


@pytest.fixture(scope="module")
def groups(policy):
    return play(policy, 64)


def fitted(policy, folder, change=None, **settings):
    """A folder with a model whose value head `change` may alter, and the settings it is for."""
    chosen = Settings(model=MODEL, **settings)
    width = policy.causal_lm.config.hidden_size
    model = build_model(chosen.model, width, 1)
    if change:
        change(model)
    save_model(model, chosen.model, width, {}, folder)
    return chosen


def assign(policy, folder, group, settings):
    config = CreditConfig(kind="turnrd", **settings.model_dump(mode="json"))
    context = Context("toy", policy, Conversation(policy.tokenizer), fitted=folder)
    return make_assigner(config, context).assign(group)


def group_of(trajectories):
    return Group(trajectories, ("test", trajectories[0].task.task_id))


def test_ranges_of_turns_by_hand():
    conversation = [5] * 12
    conversation[6] = conversation[11] = 9
    assert turn_ranges([(4, 7), (10, 12)], conversation, 9) == [(0, 6), (6, 11)]
    assert turn_ranges([], conversation, 9) == []


@pytest.mark.parametrize("capacity", [5, 64])
def test_the_engines_embeddings_are_those_of_a_forward_pass(policy, capacity):
    trajectories = [t for group in play(policy, capacity) for t in group]
    assert {turn.overlong for t in trajectories for turn in t.turns} == {True, False}
    for trajectory, expected in zip(
        trajectories, turn_embeddings(policy, trajectories), strict=True
    ):
        pooled = np.stack([turn.embedding for turn in trajectory.turns])
        np.testing.assert_allclose(pooled, expected, atol=2e-5)


def test_read_outs_by_hand():
    def credit(readout):
        alpha, values = np.array([0.25, 0.75]), np.array([3.0, -1.0])
        return read_out(Settings(readout=readout), alpha, values, 2.0).tolist()

    assert credit("alpha_return") == [0.5, 1.5]
    # Clipped to 2 and -1, sum 1; half of (1 - 2) is taken off each.
    assert credit("projected_value") == [2.5, -0.5]
    assert credit("value_baseline") == [-2.5, 2.5]
    assert uniform(4, 1.0).tolist() == [0.25] * 4
    assert uniform(0, 1.0).tolist() == []


def test_before_there_is_a_model_the_return_is_shared_equally(policy, groups):
    settings = Settings(model=MODEL)
    for row, trajectory in zip(
        assign(policy, None, group_of(groups[0]), settings), groups[0], strict=True
    ):
        expected = np.full(len(trajectory.turns), trajectory.env_return / len(trajectory.turns))
        np.testing.assert_allclose(row, expected)


@pytest.mark.parametrize("readout", READOUTS)
def test_order_of_rollouts_and_caching_change_nothing(policy, groups, tmp_path, readout):
    settings = fitted(policy, tmp_path, readout=readout)
    group = groups[1]
    here = assign(policy, tmp_path, group_of(group), settings)
    back = assign(policy, tmp_path, group_of(group[::-1]), settings)[::-1]
    cached = copy.deepcopy(group)
    for trajectory in cached:
        for turn in trajectory.turns:
            turn.embedding = None
    again = assign(policy, tmp_path, group_of(cached), settings)
    for one, two, three in zip(here, back, again, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
        np.testing.assert_allclose(one, three, atol=1e-4)


def policy_gradient(policy, groups, folder, settings):
    method = MethodConfig(
        name="x",
        alpha=0.5,
        turn_norm="group",
        credit=CreditConfig(kind="turnrd", **settings.model_dump(mode="json")),
    )
    context = Context("toy", policy, Conversation(policy.tokenizer), fitted=folder)
    assigner, groups = make_assigner(method.credit, context), copy.deepcopy(groups)
    for group in groups:
        named = group_of(group)
        group_advantages(named, assigner.assign(named), method, TRAINING)
    moved, _ = gradient(policy, training_sequences([t for group in groups for t in group]))
    return moved


def louder_values(model):
    with torch.no_grad():
        model.value[-1].weight.mul_(-3.0)
        model.value[-1].bias.add_(1.0)


@pytest.mark.parametrize(
    "readout, listens",
    [("alpha_return", False), ("projected_value", True), ("value_baseline", True)],
)
def test_the_value_head_moves_the_policy_only_where_the_readout_reads_it(
    policy, groups, tmp_path, readout, listens
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    settings = fitted(policy, tmp_path / "a", readout=readout)
    fitted(policy, tmp_path / "b", louder_values, readout=readout)
    first = policy_gradient(policy, groups, tmp_path / "a", settings)
    second = policy_gradient(policy, groups, tmp_path / "b", settings)
    assert torch.equal(first, second) != listens


@pytest.mark.parametrize("readout", READOUTS)
def test_no_loss_weight_changes_what_is_read_out(policy, groups, tmp_path, readout):
    plain = fitted(policy, tmp_path, readout=readout)
    weighted = plain.model_copy(
        update={"fit": plain.fit.model_copy(update={"value_weight": 5.0, "rank_weight": 3.0})}
    )
    one = assign(policy, tmp_path, group_of(groups[0]), plain)
    two = assign(policy, tmp_path, group_of(groups[0]), weighted)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_goal_embedding_is_shared_by_the_group(policy, groups, tmp_path):
    chosen = Settings(model=MODEL | {"film": True})
    width = policy.causal_lm.config.hidden_size
    save_model(build_model(chosen.model, width, 1), chosen.model, width, {}, tmp_path)
    group = copy.deepcopy(groups[0])
    assign(policy, tmp_path, group_of(group), chosen)
    assert len({id(trajectory.goal_embedding) for trajectory in group}) == 1
    assert group[0].goal_embedding.shape == (width,)


def test_a_turn_that_was_not_drawn_gets_no_target(policy, groups):
    settings = Settings(
        model=MODEL,
        fit={"supervision_weight": 1.0},
        counterfactual={"turns_per_trajectory": 2, "alternatives": 1},
    )
    config = CreditConfig(kind="turnrd", **settings.model_dump(mode="json"))
    collector = hall_collector(policy, 8)
    context = Context("toy", policy, Conversation(policy.tokenizer), collector)
    group = copy.deepcopy(groups[0])
    make_assigner(config, context).assign(group_of(group))
    for trajectory in group:
        targets = [turn.target for turn in trajectory.turns]
        drawn = [target for target in targets if target is not None]
        assert len(drawn) == min(2, len(targets))
        assert all(target is None or np.isfinite(target) for target in targets)


def test_the_report_is_of_the_groups_since_the_last(policy, groups, tmp_path):
    settings = fitted(policy, tmp_path)
    config = CreditConfig(kind="turnrd", **settings.model_dump(mode="json"))
    assigner = make_assigner(
        config, Context("toy", policy, Conversation(policy.tokenizer), fitted=tmp_path)
    )
    assigner.assign(group_of(groups[0]))
    numbers = assigner.report()
    assert 0 < numbers["alpha_max"] <= 1 and numbers["alpha_entropy"] > 0
    assert assigner.report() == {}
    assert load_model(tmp_path, settings).training is False
