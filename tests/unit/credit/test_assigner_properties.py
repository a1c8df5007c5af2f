"""Invariants of every credit assigner, for all shipped settings."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hall import hall_collector
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_policy import hall_tasks

from hgrpo.agent.conversation import Conversation
from hgrpo.config.read import read_yaml
from hgrpo.credit.base import Context, Group, assign_all, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.prompt_states import prompt_states
from hgrpo.credit.state_graph.keys import cosine_clusters
from hgrpo.credit.turnrd.model import build_model, save_model
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.evaluation.shared_rollouts import computations
from hgrpo.policy.head import decode
from hgrpo.trajectories.played_groups import read_groups
from hgrpo.trajectories.store import sequence_table, turn_table, write_table

# The hall knows neither what a choice is worth nor its exact state; `test_oracle` and `test_exact`
# play chores. `test_vine` and `test_counterfactual` test the other arms that play much.
CREDIT = {
    path.stem: credit
    for path in sorted(Path("configs/methods").glob("*.yaml"))
    if (credit := read_yaml(path).get("credit", {"kind": "flat"}))["kind"]
    not in ("oracle", "exact")
    and path.stem not in ("VineShuffled", "CounterfactualGated")
}
GRAPH = [name for name, section in CREDIT.items() if section["kind"] == "state_graph"]
TURN_CAP, K = 5, 6
TASKS = hall_tasks(3)
STREAM = ("train", 1, 2, 0)


@pytest.fixture(scope="module")
def collector(policy):
    return hall_collector(policy, embeddings=True)


@pytest.fixture(scope="module")
def groups(collector):
    """Three groups of different lengths; situations and progress are made up."""
    rng = np.random.default_rng(7)
    groups = collector.collect(TASKS, K, STREAM)
    for trajectory in (trajectory for group in groups for trajectory in group):
        for turn in trajectory.turns:
            turn.progress = float(rng.integers(-1, 3)) / 4
            turn.state, turn.commands = f"s{rng.integers(4)}", f"c{rng.integers(2)}"
    assert len({len(t.turns) for t in groups[0]}) > 1
    assert len({t.env_return for t in groups[0]}) > 1
    return groups


@pytest.fixture(scope="module")
def context(policy, collector, tmp_path_factory):
    return Context(
        "alfworld",
        policy,
        Conversation(policy.tokenizer),
        collector,
        tmp_path_factory.mktemp("cache"),
    )


@pytest.fixture(scope="module")
def build(policy, context, tmp_path_factory):
    """Assigner of a method; a TurnRD has a model, not fitted to anything."""

    def make(name, first_round=False):
        section = computations({name: CreditConfig(**CREDIT[name])}, {})[0].credit
        fitted = None
        if section.kind == "turnrd" and not first_round:
            fitted = tmp_path_factory.mktemp(name)
            turnrd = Settings(**section.settings)
            width = policy.causal_lm.config.hidden_size
            save_model(build_model(turnrd.model, width, 3), turnrd.model, width, {}, fitted)
        whole = Context(
            context.environment,
            context.policy,
            context.conversation,
            context.collector,
            context.cache_dir,
            fitted,
        )
        return make_assigner(section, whole)

    return make


@pytest.fixture(scope="module", params=CREDIT)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def assigner(name, build):
    return build(name)


def named(trajectories):
    task = trajectories[0].task.task_id if trajectories else "none"
    return Group(copy.deepcopy(trajectories), (*STREAM, task))


def close(actual, expected):
    assert len(actual) == len(expected)
    for row, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(row, other, rtol=1e-6, atol=1e-6)


def whole(credit, trajectories):
    """One finite float64 for every turn."""
    assert [row.shape for row in credit] == [(len(t.turns),) for t in trajectories]
    assert all(row.dtype == np.float64 and np.isfinite(row).all() for row in credit)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(K)), number=st.integers(0, 2))
def test_credit_follows_a_trajectory_to_its_place_in_the_group(assigner, groups, order, number):
    group = groups[number]
    credit = assigner.assign(named(group))
    shuffled = assigner.assign(named([group[k] for k in order]))
    close(shuffled, [credit[k] for k in order])


def test_other_groups_in_the_batch_do_not_matter(assigner, groups):
    together = assign_all(assigner, [named(group) for group in groups])
    alone = [assigner.assign(named(group)) for group in groups]
    for group, one, other in zip(groups, together, alone, strict=True):
        whole(one, group)
        close(one, other)


def test_sums_are_what_is_promised(name, build, groups):
    for first_round in (False, True):
        config, fits = CreditConfig(**CREDIT[name]), {} if first_round else {name: Path("x")}
        promised = computations({name: config}, fits)[0]
        for group in groups:
            credit = build(name, first_round).assign(named(group))
            sums = np.array([row.sum() for row in credit])
            match promised.sums_to:
                case "return":
                    np.testing.assert_allclose(sums, [t.env_return for t in group], atol=1e-6)
                case "progress":
                    gains = [sum(turn.progress for turn in t.turns) for t in group]
                    np.testing.assert_allclose(sums, gains, atol=1e-9)
                case _:
                    promises = CREDIT[name]["kind"] in {"progress", "random", "turnrd"}
                    assert not promises or CREDIT[name].get("to_go")


def with_ends(trajectories, won):
    """The group with other verdicts: whether each trajectory won, and what that paid."""
    group = copy.deepcopy(trajectories)
    for trajectory, success in zip(group, won, strict=True):
        trajectory.success, trajectory.truncated = success, not success
        trajectory.turns[-1].env_reward = float(success)
    return group


@pytest.mark.parametrize("name", GRAPH)
def test_the_state_graph_credits_wins_and_nothing_else(name, build, groups):
    assigner = build(name)
    group = with_ends(groups[0], [True, False] * (K // 2))
    credit = assigner.assign(named(group))
    whole(credit, group)
    assert np.concatenate(credit).any()
    # If every return is larger by the same amount, the same rollouts won.
    dearer = copy.deepcopy(group)
    for trajectory in dearer:
        trajectory.turns[-1].env_reward += 0.25
    for row, other in zip(assigner.assign(named(dearer)), credit, strict=True):
        np.testing.assert_array_equal(row, other)
    assert not np.concatenate(assigner.assign(named(with_ends(groups[0], [False] * K)))).any()
    # Of wins, a discount may prefer the shorter; these are equally long.
    short = copy.deepcopy(groups[0])
    for trajectory in short:
        del trajectory.turns[1:]
    assert not np.concatenate(assigner.assign(named(with_ends(short, [True] * K)))).any()


def test_hidden_states_of_the_same_conversation_are_one_state(policy, groups):
    """All first turns follow the same opening; later ones follow different doors."""
    hidden = prompt_states(policy, groups[0])
    first = np.cumsum([0, *(len(t.turns) for t in groups[0][:-1])])
    assert hidden.shape == (sum(len(t.turns) for t in groups[0]), 32)
    actual = cosine_clusters(hidden, 0.9999)
    assert len(set(actual[first])) == 1
    assert len(set(actual)) > 1
    # A turn's state is what the policy makes of the tokens before the reply, and of no others.
    for trajectory, start in zip(groups[0], first, strict=True):
        for t, turn in enumerate(trajectory.turns):
            tokens = torch.tensor([trajectory.token_ids[: turn.span[0]]])
            with torch.inference_mode():
                alone = decode(policy.causal_lm, tokens)[0][0, -1].numpy()
            np.testing.assert_allclose(hidden[start + t], alone, atol=2e-5)


@pytest.mark.parametrize("case", ["none", "without turns", "one", "identical", "two lengths"])
def test_credit_is_finite_in_odd_groups(assigner, groups, case):
    longest = max(groups[0], key=lambda t: len(t.turns))
    bare = copy.deepcopy(longest)
    bare.turns = []
    copies = [copy.deepcopy(longest) for _ in range(4)]
    for rollout, twin in enumerate(copies):
        twin.rollout = rollout
    group = {
        "none": [],
        "without turns": [bare],
        "one": [longest],
        "identical": copies,
        "two lengths": [longest, bare],
    }[case]
    whole(assigner.assign(named(group)), group)


def test_cached_rollouts_get_the_credit_they_got_in_the_loop(name, build, groups, tmp_path):
    flat = [trajectory for group in groups for trajectory in copy.deepcopy(group)]
    in_loop = [build(name).assign(named(group)) for group in groups]
    write_table(turn_table(flat, 2, 0), tmp_path / "turns.parquet")
    write_table(sequence_table(flat, 2, 0), tmp_path / "sequences.parquet")
    cached = read_groups(tmp_path, TASKS)
    for group, expected in zip(cached, in_loop, strict=True):
        actual = build(name).assign(named(group.trajectories))
        for row, other in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(row, other)
