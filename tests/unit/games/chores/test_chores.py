"""Chores: the rules by hand, what the panels hold, and what the expert does."""

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.chores.env import ChoresEnv
from hgrpo.games.chores.expert import beliefs
from hgrpo.games.chores.game import Game, habits_of
from hgrpo.games.chores.settings import ChoresSettings
from hgrpo.games.kinds import load
from hgrpo.stages.sections import environment_settings

PANELS = {"train": 40, "validation": 5, "test": 5}


def world(**changes) -> ChoresSettings:
    keys = {"name": "chores", "turn_cap": 20, "panels": PANELS, "chores": 4} | changes
    return environment_settings(keys, "test")


def panels(settings: ChoresSettings, seed: int = 0) -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = {}
    for split, task in load("chores").make_tasks(settings, seed, Path(), Counter()):
        tasks.setdefault(split, []).append(task)
    return tasks


def task(settings: ChoresSettings, game: Game) -> Task:
    return Task("t", game.path, game.content_hash(settings), "chores")


def placed(settings: ChoresSettings, counts: str, right: str, **play) -> tuple[float, list]:
    """Play a game whose chores count where `counts` has a 1, right where `right` has one."""
    habits = habits_of(settings)
    things = tuple(habits.place)[: len(counts)]
    game = Game("baker", things, tuple(mark == "1" for mark in counts))
    env = ChoresEnv(settings)
    env.reset(task(settings, game))
    steps = []
    if settings.delay:
        wrong = next(c for c in env.admissible_commands() if c != env.right_command())
        steps.append(env.step(env.right_command() if play["bag"] else wrong))
    for mark in right:
        wrong = next(c for c in env.admissible_commands() if c != env.right_command())
        steps.append(env.step(env.right_command() if mark == "1" else wrong))
    return sum(step.env_reward for step in steps), steps


@pytest.mark.parametrize(
    ("settings", "counts", "right", "play", "paid", "won"),
    [
        ({}, "1111", "1111", {}, 1.0, True),
        ({}, "1111", "1000", {}, 0.25, False),
        ({}, "1111", "1100", {}, 0.5, True),
        ({}, "1010", "1000", {}, 0.5, True),
        ({}, "1010", "0101", {}, 0.0, False),
        ({"verdict": "binary"}, "1111", "1100", {}, 1.0, True),
        ({"verdict": "binary"}, "1111", "1000", {}, 0.0, False),
        ({"verdict": "binary", "pass_score": 0.25}, "1111", "1000", {}, 1.0, True),
        ({"delay": 0.4}, "1111", "0000", {"bag": True}, 0.4, True),
        ({"delay": 0.4}, "1111", "1100", {"bag": False}, 0.3, False),
    ],
)
def test_the_verdict_is_the_share_of_right_chores_that_count(
    settings, counts, right, play, paid, won
):
    total, steps = placed(world(**settings), counts, right, **play)
    assert total == pytest.approx(paid)
    assert [step.done for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].success is won
    # Nothing is told before the end.
    assert all(step.env_reward == 0 and not step.success for step in steps[:-1])


def test_progress_is_the_hidden_truth_of_every_choice():
    _, steps = placed(world(delay=0.2), "1011", "1110", bag=True)
    assert [step.progress for step in steps] == pytest.approx([0.2, 0.8 / 3, 0, 0.8 / 3, 0])


def test_worths_are_what_each_command_adds_to_the_score():
    settings = world(delay=0.2, may_leave=True)
    for game in panels(settings)["train"][:5]:
        env = ChoresEnv(settings)
        env.reset(game)
        done = False
        while not done:
            worths = env.worths()
            assert list(worths) == env.admissible_commands()
            for command, worth in worths.items():
                if command != "leave":
                    other = pickle.loads(pickle.dumps(env))
                    assert other.step(command).progress == pytest.approx(worth)
            done = env.step(env.admissible_commands()[0]).done


def test_a_distractor_pays_only_where_no_chore_counts_and_follows_no_habit():
    settings = world(distractor=0.5, share=0.5, chores=40, turn_cap=40)
    paid: dict[bool, list[float]] = {True: [], False: []}
    for game in panels(settings)["train"]:
        env = ChoresEnv(settings)
        env.reset(game)
        counts = [word.endswith("*") for word in game.path.split()[1:]]
        steps = [env.step(env.right_command()) for _ in counts]
        for step, count in zip(steps[:-1], counts[:-1], strict=True):
            paid[count].append(step.env_reward)
    assert set(paid[True]) == {0.0}
    assert set(paid[False]) == {0.0, 0.5}
    assert abs(np.mean(paid[False]) - 0.25) < 5 * 0.25 / len(paid[False]) ** 0.5


def test_leaving_ends_the_game_and_what_is_left_counts_as_wrong():
    settings = world(may_leave=True)
    env = ChoresEnv(settings)
    env.reset(panels(settings)["test"][0])
    env.step(env.right_command())
    step = env.step("leave")
    assert (step.env_reward, step.done, step.progress) == (0.25, True, 0)
    with pytest.raises(RuntimeError):
        env.step("leave")
    assert "leave" not in ChoresEnv(world()).admissible_commands()


def test_a_command_that_is_not_admissible_changes_nothing():
    settings = world()
    env = ChoresEnv(settings)
    env.reset(panels(settings)["test"][0])
    before = env.admissible_commands(), env.situation()
    step = env.step("leave")
    assert (step.info["admissible"], step.env_reward, step.progress) == (False, 0, 0)
    with pytest.raises(TypeError, match="an action must be a string, not None"):
        env.step(None)
    assert (env.admissible_commands(), env.situation()) == before
    assert step.observation.text.startswith("Nothing happens. Where does the ")


def situations(settings: ChoresSettings, *rollouts: list[int]) -> list[tuple[str, str]]:
    """The situation after each rollout of the same game, given as indices of commands."""
    reached = []
    for rollout in rollouts:
        env = ChoresEnv(settings)
        env.reset(panels(settings)["test"][0])
        for index in rollout:
            env.step(env.admissible_commands()[index] if index >= 0 else "x")
        reached.append(env.situation())
    return reached


def test_rollouts_meet_where_the_agent_could_know_no_difference():
    # Half of the chores count. A difference in any of them, or in the bag, is one to the agent.
    settings = world(chores=2, share=0.5, delay=0.2)
    first, same, idle, bag, place, order, fewer = situations(
        settings, [0, 1, 2], [0, 1, 2], [0, -1, 1, 2], [1, 1, 2], [0, 1, 3], [0, 2, 1], [0, 1]
    )
    assert first == same == idle
    assert len({first, bag, place, order, fewer}) == 5


def test_no_situation_shows_what_counts_or_what_is_right():
    settings = world(chores=2, share=0.5)
    things = tuple(habits_of(settings).place)[:2]
    other = settings.model_copy(update={"habits": 1})
    for index in range(settings.places):
        reached = set()
        for rules, counts in ((settings, (True, False)), (settings, (False, True)), (other, None)):
            env = ChoresEnv(rules)
            names = things if counts else tuple(habits_of(other).place)[:2]
            env.reset(task(rules, Game("baker", names, counts or (True, False))))
            env.step(env.admissible_commands()[index])
            reached.add(env.situation())
        assert len(reached) == 1


def test_panels_are_disjoint_and_the_same_for_the_same_seed():
    settings = world()
    first, again, other = panels(settings), panels(settings), panels(settings, seed=1)
    assert first == again != other
    assert {split: len(tasks) for split, tasks in first.items()} == PANELS
    hashes = [task.content_hash for tasks in first.values() for task in tasks]
    assert len(set(hashes)) == len(hashes)


def test_the_given_share_of_chores_counts_in_every_game():
    for counted in ("chance", "kinds"):
        settings = world(chores=16, share=0.25, counted=counted)
        kinds = set()
        for game in panels(settings)["train"]:
            words = game.path.split()[1:]
            assert sum(word.endswith("*") for word in words) == 4
            kinds.add(frozenset(word for word in words if word.endswith("*")))
        counting = {kind.rstrip("*") for game in kinds for kind in game}
        always = set(habits_of(settings).counting)
        assert len(always) == 10
        assert (counting <= always) is (counted == "kinds")


def test_a_world_with_too_few_games_is_refused():
    settings = world(chores=1, kinds=2, turn_cap=1, expert={"turn_cap": 1})
    with pytest.raises(UserError, match=r"panels\.train: found 16 games, but 1000 further"):
        panels(settings)


@pytest.mark.parametrize("changed", [{"habits": 1}, {"pass_score": 0.5}])
def test_a_game_of_another_world_is_refused(changed):
    stale = panels(world())["test"][0]
    with pytest.raises(UserError, match="test-0: the game with its habits has content hash"):
        ChoresEnv(world(**changed)).reset(stale)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chores": 30}, "turn_cap: a game takes 30 turns, which exceeds the limit of 20"),
        ({"expert": {"turn_cap": 3}}, "expert.turn_cap: a game takes 4 turns"),
        ({"expert": {"routine": 0.5}}, "expert.routine: a value above 0 requires `counted: kinds`"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises((UserError, ValidationError), match=message):
        world(**settings)


def test_the_expert_is_right_as_often_as_it_should_be():
    settings = world(
        chores=10, share=0.5, counted="kinds", expert={"knows": 0.6, "sure": 0.4, "routine": 1.0}
    )
    settings = settings.model_copy(
        update={"expert": settings.expert.model_copy(update={"trajectories": 200})}
    )
    tasks = panels(settings)
    rows = list(load("chores").demonstrate(settings, Path(), tasks, 0, Counter()))
    assert rows == list(load("chores").demonstrate(settings, Path(), tasks, 0, Counter()))
    habits, believed, right, wrong, routine = habits_of(settings), beliefs(settings), [], [], []
    known = {kind for kind in habits.counting if believed[kind] == habits.place[kind]}
    assert len(known) == 0.6 * len(habits.counting)
    for row in rows:
        things = [text.split("the ")[-1].split()[0] for text in row["observations"][:-1]]
        for thing, place in zip(things, row["actions"], strict=True):
            if thing in known:
                right.append(place == habits.place[thing])
            elif thing in habits.counting:
                wrong.append(place == habits.place[thing])
            else:
                routine.append(place)
    # 0.4, and a sixth of the rest; where the expert is wrong, only a sixth of the rest.
    assert abs(np.mean(right) - 0.5) < 5 * 0.5 / len(right) ** 0.5
    assert abs(np.mean(wrong) - 0.1) < 5 * 0.3 / len(wrong) ** 0.5
    assert set(routine) == {"attic"}


def test_the_informed_player_scores_one_and_a_game_plays_on_after_pickling():
    settings = world(delay=0.5)
    tasks = panels(settings)
    rows = load("chores").ceiling(settings, Path(), tasks["test"], 0)
    assert [(row["success"], row["score"]) for row in rows] == [(True, 1.0)] * 5
    env = load("chores").factory(settings, Path())()
    env.reset(tasks["test"][0])
    env.step(env.right_command())
    other = pickle.loads(pickle.dumps(env))
    assert other.step(other.right_command()) == env.step(env.right_command())
