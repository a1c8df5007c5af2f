"""New games in the published layout, seeded, disjoint between splits, equal parts per task type."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hgrpo import streams
from hgrpo.config.env import GenerateConfig
from hgrpo.envs.alfworld import problem
from hgrpo.envs.alfworld.gamefile import GAME_FILE, TASK_FILE
from hgrpo.envs.alfworld.goals import KINDS, sentence
from hgrpo.envs.alfworld.house import House, Household, Mission
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
    config: GenerateConfig, sizes: dict[str, int], language: str, seed: int
) -> Iterator[tuple[str, GameFiles]]:
    """Yield (split, game), split by split; no house and mission come twice in all splits together.

    Game i of a split has task type i modulo the number of types, so that every prefix of a panel
    is stratified. A game depends on (seed, split, i) and, in the rare case that its draw had come
    before, on the games before it.

    Raises:
        UserError: the config names unknown types or a task type that cannot be played, or allows
            too few different games for the panels.
    """
    household = Household(config)
    seen: set[bytes] = set()
    for split in SPLITS:
        for index in range(sizes[split]):
            kind = config.task_types[index % len(config.task_types)]
            yield split, _fresh(household, kind, split, index, language, seed, seen)


def _fresh(
    household: Household,
    kind: str,
    split: str,
    index: int,
    language: str,
    seed: int,
    seen: set[bytes],
) -> GameFiles:
    for attempt in range(_ATTEMPTS):
        rng = streams.generator("alfworld-game", seed, split, index, attempt)
        house, mission = household.draw(kind, rng)
        # The wording of the goal is left out: one house and mission in two wordings is one game.
        content = hashlib.blake2b(repr((house, mission)).encode(), digest_size=16).digest()
        if content not in seen:
            seen.add(content)
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
