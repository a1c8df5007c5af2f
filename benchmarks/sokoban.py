"""Compare the speed of our Sokoban environment with that of gym-sokoban.

The two environments play the same ten random actions in each level, and times are per action. In
our environment, a turn has two actions. It includes parsing the reply, moving the player, and
computing progress and the text of the next state. In gym-sokoban, a step has one action and renders
its smallest image, `tiny_rgb_array`, which has one pixel per cell. Resets of our environment are
timed separately. The first reset of a level also computes the distances that are needed for
progress.

Runs of the two environments alternate, and a ratio is the median over pairs of runs. gym-sokoban is
installed by the extra `sokoban`.
"""

import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

from gym_oracle import GymGame

from hgrpo.games.base import Task
from hgrpo.games.sokoban import assets, files
from hgrpo.games.sokoban.env import SokobanEnv
from hgrpo.games.sokoban.replies import write_reply
from hgrpo.games.sokoban.settings import SokobanSettings
from hgrpo.workflow.packages import packages

SIZES = {"6x6, one box": (6, 1), "8x8, two boxes": (8, 2)}
VIEWS = ("grid", "grid_coord")
LEVELS, GAMES, REPEATS = 60, 600, 7

# A game: its task, and ten actions as indices.
Games = list[tuple[Task, list[int]]]


def measure(folder: Path) -> dict[str, dict]:
    """Measurements for every room size and view."""
    return {
        f"{name}, view {view}": _measure(folder / f"{size}-{view}", size, boxes, view)
        for name, (size, boxes) in SIZES.items()
        for view in VIEWS
    }


def _measure(folder: Path, size: int, boxes: int, view: str) -> dict:
    config = SokobanSettings(
        name="sokoban",
        view=view,
        levels={"generate": {"rows": size, "columns": size, "boxes": boxes}},
        panels={"train": LEVELS, "validation": 3, "test": 3},
    )
    made = assets.make(config, 0, folder, Counter())
    tasks = [task for split, task in made if split == "train"]
    rng = random.Random(0)
    games = [(rng.choice(tasks), [rng.randrange(4) for _ in range(10)]) for _ in range(GAMES)]
    env = SokobanEnv(folder, config)
    table_ms = _new_level_ms(env, tasks)
    pairs = [(_ours(env, games), _gym(folder, games)) for _ in range(REPEATS)]
    per_action = median(ours for (ours, _), _ in pairs)
    theirs = None if pairs[0][1] is None else median(each for _, each in pairs)
    return {
        "us_per_action": per_action,
        "turns_per_s": 1e6 / (2 * per_action),
        "reset_us": median(reset for (_, reset), _ in pairs),
        "new_level_ms": table_ms,
        "gym_us_per_action": theirs,
        "ratios": [each / ours for (ours, _), each in pairs if each is not None],
    }


def _new_level_ms(env: SokobanEnv, tasks: list[Task]) -> float:
    """Milliseconds of the first reset for a new level."""
    files._cache.clear()
    times = []
    for task in tasks:
        began = time.process_time()
        env.reset(task)
        times.append(time.process_time() - began)
    return 1000 * median(times)


def _ours(env: SokobanEnv, games: Games) -> tuple[float, float]:
    """Microseconds per action and microseconds per reset of our environment."""
    step_s = reset_s = 0.0
    actions = 0
    for task, numbers in games:
        replies = [write_reply(tuple(numbers[i : i + 2])) for i in range(0, 10, 2)]
        began = time.process_time()
        env.reset(task)
        started = time.process_time()
        for reply in replies:
            if env.step(reply).done:
                break
        step_s += time.process_time() - started
        reset_s += started - began
        actions += 10 - env.left
    return 1e6 * step_s / actions, 1e6 * reset_s / len(games)


def _gym(folder: Path, games: Games) -> float | None:
    """Microseconds per action of gym-sokoban; None if it is not installed."""
    if any(each.lacking for each in packages("sokoban")):
        return None
    ready: dict[str, GymGame] = {}
    spent, actions = 0.0, 0
    for task, numbers in games:
        if task.path not in ready:
            level, _ = files.compiled(files.level_text(folder, task.path), 10)
            ready[task.path] = GymGame(level, 10)
        game = ready[task.path]
        game.reset()
        began = time.process_time()
        for number in numbers:
            actions += 1
            if game.step(number)[1]:
                break
        spent += time.process_time() - began
    return 1e6 * spent / actions


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measure(Path(scratch))))
