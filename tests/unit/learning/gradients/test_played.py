"""Groups that are played for an analysis have the advantages that a training step would use."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from tiny_policy import hall_tasks
from toy_round import FLAT, PPO, small_round

from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.gradients.played import analysed_tasks, play, prepare

FILTER = FilterConfig(strategy="top_p", value=0.9, include_zero=False)


def trained_on(of, monkeypatch):
    """The groups of a round's first step, and the sequences and order that its update is given."""
    step, play = {}, of._play

    def played(*arguments):
        result = play(*arguments)
        step["groups"] = copy.deepcopy(result[0])
        return result

    def update(sequences, order):
        step.update(sequences=sequences, order=sorted(order))
        raise InterruptedError

    monkeypatch.setattr(of, "_play", played)
    monkeypatch.setattr(of.learner, "update", update)
    with pytest.raises(InterruptedError):
        of.run(lambda row: None, lambda: None)
    return step


@pytest.mark.parametrize("method", [FLAT, PPO], ids=lambda method: method.name)
@pytest.mark.parametrize(("rms", "chosen"), [(None, None), (1.5, FILTER)], ids=["all", "filtered"])
def test_the_advantages_are_those_of_training(imitator, tmp_path, monkeypatch, method, rms, chosen):
    changes = {"advantage_rms": rms, "filter": chosen}
    step = trained_on(small_round(imitator, tmp_path / "one", method, **changes), monkeypatch)
    other = small_round(imitator, tmp_path / "two", method, **changes)
    prepared = prepare(other, step["groups"])
    assert np.flatnonzero(prepared.chosen.flat).tolist() == step["order"]
    ours = [sequence for group in prepared.groups for sequence in group]
    for index in step["order"]:
        advantages = (ours[index].advantages - prepared.shift) / prepared.scale
        expected = step["sequences"][index].advantages
        np.testing.assert_allclose(advantages, expected, rtol=1e-4, atol=1e-5)
        assert len(ours[index].reference) == len(expected)


def test_the_deviations_are_the_samples(imitator, tmp_path):
    of = small_round(imitator, tmp_path / "one")
    groups = play(of, analysed_tasks(hall_tasks(30), 3, seed=1), 4, lambda: None)
    returns = [[each.env_return for each in group.trajectories] for group in groups]
    np.testing.assert_allclose(prepare(of, groups).deviations, np.std(returns, axis=1, ddof=1))


def test_all_arms_play_the_same_tasks_and_training_draws_none_of_their_numbers(imitator, tmp_path):
    tasks = analysed_tasks(hall_tasks(30), 3, seed=1)
    assert tasks == analysed_tasks(hall_tasks(30), 3, seed=1)
    assert tasks != analysed_tasks(hall_tasks(30), 3, seed=2)
    of = small_round(imitator, tmp_path / "one")
    before = {name: value.clone() for name, value in of.learner.policy.trained_state().items()}
    first = play(of, tasks, 4, lambda: None)
    prepare(of, first)
    again = play(small_round(imitator, tmp_path / "two"), tasks, 4, lambda: None)
    tokens = [[each.token_ids for each in group.trajectories] for group in first]
    assert tokens == [[each.token_ids for each in group.trajectories] for group in again]
    after = of.learner.policy.trained_state()
    assert all(bool((after[name] == value).all()) for name, value in before.items())
    # A round that is analysed first trains as one that is not.
    other = small_round(imitator, tmp_path / "three")
    rows = [each.run(lambda row: None, lambda: None) for each in (of, other)]
    assert [row["grad_norm"] for row in rows[0]] == [row["grad_norm"] for row in rows[1]]


@pytest.mark.parametrize("method", [FLAT, PPO], ids=lambda method: method.name)
def test_where_the_filter_keeps_nothing_all_groups_give_the_constants(
    imitator, tmp_path, monkeypatch, method
):
    of = small_round(imitator, tmp_path / "one", method)
    groups = play(of, analysed_tasks(hall_tasks(30), 3, seed=1), 4, lambda: None)
    everything = prepare(of, copy.deepcopy(groups))
    chosen = everything.chosen
    empty = replace(chosen, trajectories=[np.zeros_like(each) for each in chosen.trajectories])
    monkeypatch.setattr(of, "choose", lambda *each: empty)
    nothing = prepare(of, groups)
    assert not nothing.chosen.flat.any()
    assert (nothing.shift, nothing.scale) == (everything.shift, everything.scale)
    assert nothing.scale > 0


def test_credit_that_plays_on_finds_the_engine_awake(imitator, tmp_path, monkeypatch):
    of, events = small_round(imitator, tmp_path / "one"), []
    monkeypatch.setattr(of.collector.engine, "sleep", lambda: events.append("sleep"))
    assign = of.assigner.assign
    monkeypatch.setattr(of.assigner, "assign", lambda *g: events.append("credit") or assign(*g))
    prepare(of, play(of, analysed_tasks(hall_tasks(30), 2, seed=1), 4, lambda: None))
    assert events == ["credit", "credit", "sleep"]
