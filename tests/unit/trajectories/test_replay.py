"""Turns keep the fingerprints of their states, and playing again checks the answers."""

import copy

import pytest
from hall import TURN_CAP, collect, hall_collector
from tiny_policy import HallEnv, make_policy
from toy_round import imitate_random_doors

from hgrpo.errors import UserError
from hgrpo.rollout.branching import Start
from hgrpo.trajectories.replay import ReplayError, play_again
from hgrpo.trajectories.trajectory import FinalState


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    policy = make_policy(tmp_path_factory.mktemp("base"))
    imitate_random_doors(policy)
    return collect(policy, tasks=2, rollouts=4)


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    return hall_collector(make_policy(tmp_path_factory.mktemp("base")))


def test_a_turn_has_the_fingerprint_of_the_state_it_was_taken_in(played):
    for trajectory in played:
        assert trajectory.turns[0].state == "opened "
    longest = max(played, key=lambda t: len(t.turns))
    assert longest.turns[-1].state != "opened "


def test_a_trajectory_has_the_state_it_ended_in(played):
    assert {t.truncated for t in played} == {False, True}, "some win, some are stopped"
    for trajectory in played:
        opened = {turn.action.removeprefix("open ") for turn in trajectory.turns if turn.admissible}
        last = trajectory.turns[-1]
        text = f"The {last.action.removeprefix('open ')} is empty."
        assert trajectory.final == FinalState(
            text if last.admissible else "Nothing happens.",
            f"opened {' '.join(sorted(opened))}",
            "all doors",
        )


@pytest.mark.parametrize("turn", [0, 1])
def test_another_answer_is_an_error(played, turn):
    chosen = copy.deepcopy(next(t for t in played if len(t.turns) > 1))
    chosen.turns[turn].observation = "You are elsewhere."
    with pytest.raises(UserError, match="after replaying .*, expected observation 'You are else"):
        list(play_again(HallEnv(), chosen, len(chosen.turns)))


def test_playing_again_stops_after_the_given_number_of_turns(played):
    longest = max(played, key=lambda t: len(t.turns))
    seen = [one.text for one in play_again(HallEnv(), longest, 1)]
    assert seen == [turn.observation for turn in longest.turns[:2]]


def test_another_answer_is_an_error_of_continued_play_too(played, collector):
    long = copy.deepcopy(max(played, key=lambda t: len(t.turns)))
    long.turns[1].observation = "You are elsewhere."
    start = Start(long.task, 0, 1, TURN_CAP, long, 1)
    with pytest.raises(ReplayError, match="after replaying .*, expected"):
        collector.play([start])
