"""Generates games in the published layout: seeded, disjoint splits, equal parts per task type."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hgrpo import streams
from hgrpo.envs.alfworld import problem
from hgrpo.envs.alfworld.gamefile import GAME_FILE, TASK_FILE
from hgrpo.envs.alfworld.goals import KINDS, sentence
from hgrpo.envs.alfworld.house import House, Household, Mission
from hgrpo.envs.alfworld.settings import GenerateSettings
from hgrpo.envs.panels import SPLITS
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
    """Yield (split, game), split by split.

    A pair of house and mission occurs at most once. No two splits share a game's core: the room
    with its receptacles, the mission, and where the things lie that the mission needs. Games that
    differ only in their distractors could be solved from memory.

    Game i of a split has task type i modulo the number of types, so that every prefix of a panel
    is stratified. A game depends on (seed, split, i). Only if its first draw repeats an earlier
    game does it depend on the games before it.

    Raises:
        UserError: the settings name an unknown type or a task type that cannot be played, or they
            allow too few different games.
    """
    household = Household(config)
    drawn = _Drawn(set(), {})
    for split in SPLITS:
        for index in range(sizes[split]):
            kind = config.task_types[index % len(config.task_types)]
            yield split, _fresh(household, kind, split, index, language, seed, drawn)


@dataclass(frozen=True)
class _Drawn:
    """The games drawn so far, and the split of each core."""

    games: set[bytes]
    cores: dict[bytes, str]

    def admits(self, house: House, mission: Mission, split: str) -> bool:
        """Whether the game is new and its core is free for this split; if so, record it."""
        # Goals are not compared: one house and mission in two wordings is one game.
        game, core = _digest((house, mission)), _digest(core_of(house, mission))
        if game in self.games or self.cores.setdefault(core, split) != split:
            return False
        self.games.add(game)
        return True


def core_of(house: House, mission: Mission) -> tuple:
    """What identifies a game apart from its distractors."""
    needed = {mission.target, mission.toggle}
    places = tuple(place for place in house.objects if place[0] in needed)
    return house.room, house.receptacles, mission, places


def _digest(content: tuple) -> bytes:
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()


def _fresh(
    household: Household,
    kind: str,
    split: str,
    index: int,
    language: str,
    seed: int,
    drawn: _Drawn,
) -> GameFiles:
    for attempt in range(_ATTEMPTS):
        rng = streams.generator("alfworld-game", seed, split, index, attempt)
        house, mission = household.draw(kind, rng)
        if drawn.admits(house, mission, split):
            templates = KINDS[kind].sentences
            template = templates[int(rng.integers(len(templates)))]
            return _assemble(house, mission, template, split, index, language, seed)
    raise UserError(
        f"games.generate: no new {kind} game in {_ATTEMPTS} draws for {split} game {index}: these "
        "settings allow too few different games; widen them or make the panels smaller"
    )


def _assemble(
    house: House,
    mission: Mission,
    template: str,
    split: str,
    index: int,
    language: str,
    seed: int,
) -> GameFiles:
    goal = sentence(template, mission.target, mission.receptacle, mission.toggle)
    number = SPLITS.index(split) * 1_000_000 + index
    task = "-".join(
        [
            mission.task_type,
            mission.target,
            "None",
            mission.receptacle or mission.toggle,
            str(number),
        ]
    )
    trial = f"trial_T{seed:08d}_{SPLITS.index(split):06d}_{index:06d}"
    trajectory = {
        "task_id": trial,
        "task_type": mission.task_type,
        "pddl_params": {
            "mrecep_target": "",
            "object_sliced": False,
            "object_target": mission.target,
            "parent_target": mission.receptacle,
            "toggle_target": mission.toggle,
        },
        "scene": {"floor_plan": f"FloorPlan{number}", "room": house.room},
        "turk_annotations": {"anns": [{"task_desc": goal}]},
    }
    return GameFiles(f"{task}/{trial}", problem.game(house, mission, goal, language), trajectory)


def write(root: Path, files: GameFiles) -> None:
    """Write `game.tw-pddl` and `traj_data.json` into the new folder `root/<task>/<trial>`."""
    place = root / files.folder
    place.mkdir(parents=True)
    (place / GAME_FILE).write_text(json.dumps(files.game))
    (place / TASK_FILE).write_text(json.dumps(files.trajectory))
