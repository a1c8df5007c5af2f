"""Two scripted players. The expert plays demonstrations; the informed player knows all habits.

The expert has fixed wrong beliefs about some kinds of objects. A policy that imitates the expert
puts these objects into a wrong place even with greedy decoding. Only scores reveal the mistake.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from hgrpo.games import streams
from hgrpo.games.base import Task
from hgrpo.games.chores.env import LEAVE, ChoresEnv
from hgrpo.games.chores.game import BAGS, PLACES, habits_of
from hgrpo.games.chores.settings import ChoresSettings
from hgrpo.games.demonstration import play, shared_out


def demonstrate(settings: ChoresSettings, panel: list[Task], seed: int) -> Iterator[dict]:
    """Play the expert's games, and yield one row each."""
    expert, env = settings.expert, ChoresEnv(settings)
    for task, repetition in shared_out(expert.trajectories, panel):
        rng = streams.generator("chores-expert", seed, task.task_id, repetition)
        player = partial(choice, env, settings, rng)
        yield play(env, task, env.reset(task), "expert", player, expert.turn_cap).row


@lru_cache(maxsize=4)
def beliefs(settings: ChoresSettings) -> dict[str, str]:
    """The expert's beliefs: the place of each kind of object, and the bag of each client.

    The fraction of right beliefs is `expert.knows`, separately among the kinds that count, among
    the other kinds, and among the clients. The remaining beliefs are fixed and wrong.
    """
    habits = habits_of(settings)
    rng = streams.generator("chores-beliefs", settings.habits)
    counting = {kind: habits.place[kind] for kind in habits.counting}
    routine = {kind: place for kind, place in habits.place.items() if kind not in counting}
    places = PLACES[: settings.places]
    tables = ((counting, places), (routine, places), (habits.bag, BAGS))
    believed: dict[str, str] = {}
    for truth, options in tables:
        known = rng.permutation(len(truth)) < round(settings.expert.knows * len(truth))
        for (name, right), knows in zip(truth.items(), known, strict=True):
            wrong = [option for option in options if option != right]
            believed[name] = right if knows else wrong[rng.integers(len(wrong))]
    return believed


def choice(
    env: ChoresEnv, settings: ChoresSettings, rng: np.random.Generator, answer: str | None
) -> str:
    """The expert's next command. It does not depend on `answer`, and is never `leave`."""
    commands = [command for command in env.admissible_commands() if command != LEAVE]
    counts = any(env.worths().values())
    if not counts and rng.random() < settings.expert.routine:
        return commands[0]
    if rng.random() < settings.expert.sure:
        return beliefs(settings)[env.subject]
    return commands[rng.integers(len(commands))]


def ceiling(settings: ChoresSettings, panel: list[Task]) -> list[dict]:
    """Play one episode per task as a player who knows all habits; return one row per episode."""
    env, cap = ChoresEnv(settings), settings.turn_cap
    return [
        play(env, task, env.reset(task), "informed", lambda answer: env.right_command(), cap).row
        for task in panel
    ]
