"""Two scripted players that know shortest solutions: the expert, and a player without mistakes.

The expert makes mistakes at random. Most of its turns have one action although two are allowed, and
many of its actions are detours or blocked. A policy that imitates the expert plays one action per
turn even with greedy decoding, and runs out of turns. It can learn from returns that two actions
are better. The player without mistakes solves every level, since a solution fits into an episode.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from hgrpo.games import streams
from hgrpo.games.base import Task
from hgrpo.games.demonstration import play, shared_out
from hgrpo.games.sokoban.env import SokobanEnv
from hgrpo.games.sokoban.level import ACTIONS, Board
from hgrpo.games.sokoban.replies import write_reply
from hgrpo.games.sokoban.settings import SokobanExpert, SokobanSettings


def demonstrate(
    settings: SokobanSettings, tasks: Path, panel: list[Task], seed: int
) -> Iterator[dict]:
    """Play the expert's episodes, and yield one row each."""
    expert, env = settings.expert, SokobanEnv(tasks, settings)
    for task, repetition in shared_out(expert.trajectories, panel):
        rng = streams.generator("sokoban-expert", seed, task.task_id, repetition)
        player = partial(reply, env, settings, expert, rng)
        yield play(env, task, env.reset(task), "expert", player, expert.turn_cap).row


def ceiling(settings: SokobanSettings, tasks: Path, panel: list[Task], seed: int) -> list[dict]:
    """Episodes of the player without mistakes; each reply has as many actions as allowed."""
    env, rows = SokobanEnv(tasks, settings), []
    plain = SokobanExpert(single=0.0, detour=0.0, waste=0.0, turn_cap=1)
    for task in panel:
        rng = streams.generator("sokoban-expert", "plain", seed, task.task_id)
        player = partial(reply, env, settings, plain, rng)
        rows.append(play(env, task, env.reset(task), "bfs", player, settings.turn_cap).row)
    return rows


def reply(
    env: SokobanEnv,
    settings: SokobanSettings,
    expert: SokobanExpert,
    rng: np.random.Generator,
    answer: str | None,
) -> str:
    """The next reply of a player with the settings `expert`. `answer` has no effect."""
    most = min(settings.actions_per_turn, env.left)
    many = 1 if rng.random() < expert.single else most
    board, chosen = env.board, []
    for _ in range(min(many, most)):
        action = _action(env, board, expert, rng)
        chosen.append(action)
        board = env.level.move(*board, env.level.deltas[action])
        if env.level.placed(board[1]) == len(board[1]):
            break
    return write_reply(tuple(chosen))


def _action(env: SokobanEnv, board: Board, expert: SokobanExpert, rng: np.random.Generator) -> int:
    """Draw an action: a blocked one, a detour, or the first one of a shortest solution."""
    after = [env.level.move(*board, delta) for delta in env.level.deltas]
    draw = rng.random()
    numbers = range(len(ACTIONS))
    idle = [n for n in numbers if after[n] == board]
    steps = [n for n in numbers if after[n] != board and after[n][1] == board[1]]
    if draw < expert.waste and idle:
        return _one_of(idle, rng)
    if expert.waste <= draw < expert.waste + expert.detour and steps:
        return _one_of(steps, rng)
    left = env.distances.get(board)
    if left is None:  # the board cannot be solved within an episode
        return _one_of(steps or list(numbers), rng)
    return next(n for n in numbers if env.distances.get(after[n]) == left - 1)


def _one_of(numbers: list[int], rng: np.random.Generator) -> int:
    return numbers[rng.integers(len(numbers))]
