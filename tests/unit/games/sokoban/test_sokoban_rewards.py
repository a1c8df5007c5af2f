"""Under `fair`, no way to lose returns more than another one; under `ragen`, giving up does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sokoban_levels import CORNER, LINE, PAIR, at_level, level_task, world

from hgrpo.games.sokoban.env import SokobanEnv

ACTIONS = ("Up", "Down", "Left", "Right")
PIECES = st.sampled_from([*ACTIONS, *ACTIONS, "jump", ""])
REPLIES = st.lists(
    st.one_of(st.lists(PIECES, max_size=3).map(" || ".join), st.just("<answer>Up")), max_size=5
)
LEVELS = st.sampled_from([LINE, CORNER, PAIR])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("levels")


def play(folder, text: str, replies: list[str], penalties: str) -> tuple[float, bool, SokobanEnv]:
    """Return of an episode, cut off after the last reply, and whether it was solved."""
    env = at_level(folder, text, penalties=penalties)
    total, solved, done = 0.0, False, False
    for reply in replies:
        if done:
            break
        step = env.step(reply)
        total += step.env_reward
        solved, done = step.success, step.done
    return total, solved, env


def honest(env: SokobanEnv) -> float:
    """What a game lost with all its actions, all understood, returns for the same last board."""
    brought = env.level.placed(env.board[1]) - env.level.placed(env.level.start[1])
    return -1.0 + brought


@settings(max_examples=40)
@given(LEVELS, REPLIES.filter(bool))
def test_no_lost_game_returns_more_than_an_honest_one(folder, text, replies):
    total, solved, env = play(folder, text, replies, "fair")
    if not solved:
        assert total <= honest(env) + 1e-9


@settings(max_examples=40)
@given(LEVELS, REPLIES.filter(bool), st.data())
def test_an_episode_that_is_cut_off_or_idles_returns_no_more_than_if_it_went_on(
    folder, text, replies, data
):
    """Ending early, idle turns and wasted actions gain nothing, as long as the board stays."""
    total, solved, env = play(folder, text, replies, "fair")
    if solved:
        return
    board, done = env.board, env.left == 0 or len(replies) >= 5
    while not done:
        # Run against something, or do nothing that is understood.
        idle = [a for a, d in zip(ACTIONS, env.level.deltas, strict=True)
                if env.level.move(*board, d) == board] or ["?"]  # fmt: skip
        step = env.step(data.draw(st.sampled_from([*idle, "?"])))
        assert step.env_reward <= 1e-9
        total, done = total + step.env_reward, step.done
    assert total <= honest(env) + 1e-9


@settings(max_examples=40)
@given(LEVELS, REPLIES.filter(bool))
def test_a_reply_that_is_not_understood_never_pays(folder, text, replies):
    total, _, env = play(folder, text, replies, "fair")
    heard = [" || ".join(w for w in r.split(" || ") if w in ACTIONS) for r in replies]
    clean, _, other = play(folder, text, [r for r in heard if r] or ["Up"], "fair")
    if other.board == env.board:
        assert total <= clean + 1e-9


@settings(max_examples=40)
@given(LEVELS, REPLIES)
def test_solutions_return_the_same_under_both_rules(folder, text, replies):
    fair, solved, _ = play(folder, text, replies, "fair")
    ragen, also, _ = play(folder, text, replies, "ragen")
    assert solved == also
    if solved:
        assert fair == pytest.approx(ragen)
        assert fair > 8


def test_giving_up_pays_under_ragens_rules(folder):
    tried = play(folder, LINE, ["Up || Up"] * 5, "ragen")[0]
    silent = play(folder, LINE, ["?"] * 5, "ragen")[0]
    assert (tried, silent) == (pytest.approx(-1.0), pytest.approx(-0.5))
    assert play(folder, LINE, ["Up || Up"] * 5, "fair")[0] == pytest.approx(-1.0)
    assert play(folder, LINE, ["?"] * 5, "fair")[0] == pytest.approx(-1.5)


def test_progress_stays_between_nothing_and_one(folder):
    rng = np.random.default_rng(0)
    env = SokobanEnv(folder, world())
    for text in (LINE, CORNER, PAIR):
        task = level_task(folder, text)
        for _ in range(50):
            env.reset(task)
            potential, done = 1 - env.distances[env.level.start] / 11, False
            while not done:
                step = env.step(" || ".join(ACTIONS[i] for i in rng.integers(4, size=2)))
                potential, done = potential + step.progress, step.done
                assert -1e-9 <= potential <= 1 + 1e-9
                assert (potential > 1 - 1e-9) == step.success
