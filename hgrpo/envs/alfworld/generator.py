"""Generates games in the published layout: splits share no game and mix task types equally."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hgrpo import streams
from hgrpo.envs.alfworld import problem
from hgrpo.envs.alfworld.gamefile import GAME_FILE, TASK_FILE
from hgrpo.envs.alfworld.goals import KINDS, Goal, sentence
from hgrpo.envs.alfworld.house import House, Household
from hgrpo.envs.alfworld.settings import GenerateSettings
from hgrpo.envs.panels import PANELS
from hgrpo.errors import UserError

_ATTEMPTS = 1000


@dataclass(frozen=True)
class GameFiles:
    """The content of one game's two files; `folder` is `<task>/<trial>`."""

    folder: str
    game: dict
    trajectory: dict


def generate(
    config: GenerateSettings, sizes: dict[str, int], language: str, seed: int
) -> Iterator[tuple[str, GameFiles]]:
    """Yield (split, game), split by split; `sizes` may have the panel `analysis` as a fourth.

    A pair of house and goal occurs at most once. The core of a game is the room with its
    receptacles, the goal, and the places of the things that the goal needs. No two splits share a
    core: an agent could recall the solution of a game that differs only in its distractors.

    Game i of a split has task type i modulo the number of types, so that every prefix of a panel
    is stratified. A game depends on (seed, split, i). It depends on earlier games only if they rule
    out its first draw.

    Raises:
        UserError: the settings name an unknown type or a task type that cannot be played, or they
            allow too few different games.
    """
    household = Household(config)
    # The games drawn so far, and the split of each core.
    drawn, cores = set(), {}
    for place, split in enumerate(PANELS):
        for index in range(sizes.get(split, 0)):
            kind = config.task_types[index % len(config.task_types)]
            house, goal, said = _fresh(household, kind, drawn, cores, (seed, split, index))
            number = place * 1_000_000 + index
            task = f"{kind}-{goal.target}-None-{goal.receptacle or goal.toggle}-{number}"
            trial = f"trial_T{seed:08d}_{place:06d}_{index:06d}"
            trajectory = {
                "task_id": trial,
                "task_type": kind,
                "pddl_params": {
                    "mrecep_target": "",
                    "object_sliced": False,
                    "object_target": goal.target,
                    "parent_target": goal.receptacle,
                    "toggle_target": goal.toggle,
                },
                "scene": {"floor_plan": f"FloorPlan{number}", "room": house.room},
                "turk_annotations": {"anns": [{"task_desc": said}]},
            }
            game = problem.game(house, goal, said, language)
            yield split, GameFiles(f"{task}/{trial}", game, trajectory)


def _fresh(
    household: Household, kind: str, drawn: set, cores: dict[tuple, str], name: tuple[int, str, int]
) -> tuple[House, Goal, str]:
    """Draw a new house and goal, and the goal's sentence; `name` is (seed, split, index)."""
    _, split, index = name
    for attempt in range(_ATTEMPTS):
        rng = streams.generator("alfworld-game", *name, attempt)
        house, goal = household.draw(kind, rng)
        places = tuple(place for place in house.objects if place[0] in (goal.target, goal.toggle))
        core = (house.room, house.receptacles, goal, places)
        # Do not compare goal sentences. The same house and goal make the same game, in any words.
        if (house, goal) not in drawn and cores.setdefault(core, split) == split:
            drawn.add((house, goal))
            templates = KINDS[kind].sentences
            return house, goal, sentence(templates[int(rng.integers(len(templates)))], goal)
    raise UserError(
        f"games.generate: no new {kind} game in {_ATTEMPTS} draws for {split} game {index}: these "
        "settings allow too few different games; widen them or make the panels smaller"
    )


def write(root: Path, files: GameFiles) -> None:
    """Write `game.tw-pddl` and `traj_data.json` into the new folder `root/<task>/<trial>`."""
    place = root / files.folder
    place.mkdir(parents=True)
    (place / GAME_FILE).write_text(json.dumps(files.game), encoding="utf-8")
    (place / TASK_FILE).write_text(json.dumps(files.trajectory), encoding="utf-8")
