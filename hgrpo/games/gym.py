"""Wraps games as Gymnasium environments, and creates their panels of tasks when needed."""

import functools
import hashlib
import string
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Text

from hgrpo.errors import UserError
from hgrpo.games.base import Task, check_step
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load
from hgrpo.games.panels import check_filled, panel_hash, read_panels, write_panels

# Default number of tasks per panel. Panels of this size are created within seconds.
SIZES = {"train": 64, "validation": 16, "test": 16}
# Maximum length (characters) of an action and of an observation. The longest pages of WebShop are
# shorter.
_ACTION, _OBSERVATION = 1000, 1 << 15
# Number of code points in Unicode's first two planes, which contain all living scripts and emoji.
_UNICODE = 0x20000


class Game(gymnasium.Env[str, str]):
    """A text game with text observations and actions.

    `info` contains `task_id`, `task_type`, `content_hash`, `goal`, `admissible_commands` (excluding
    free text such as searches), `admissible` (whether the last action was admissible), `progress`
    (the change in a potential in [0, 1] due to the last action) and `success`.

    Args:
        game: the name of a game, or a mapping with its settings, e.g. from a file in configs/envs.
        panel: the panel from which `reset` draws tasks.
        seed: seed for creating the tasks. Pass the seed for drawing tasks to `reset`.
        folder: folder in which tasks are stored and reused; None for a temporary folder.
        settings: additional settings of the game (see docs/keys.md).

    Attributes:
        settings: all settings of the game.
        panels: maps a panel to its tasks.
        hashes: maps a panel to the SHA-256 of its tasks' contents. Results are comparable only if
            these hashes are equal.

    Raises:
        UserError: the game is unknown, or its tasks cannot be created.
        pydantic.ValidationError: a setting is invalid.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        game: str | Mapping[str, Any],
        *,
        panel: str = "train",
        seed: int = 0,
        folder: Path | str | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ):
        content = ({"name": game} if isinstance(game, str) else dict(game)) | settings
        environment = load(content.get("name"))
        content["panels"] = SIZES | dict(content.get("panels", {}))
        self.settings = environment.Settings.model_validate(content)
        place = make_tasks(self.settings, seed, Path(folder or _scratch().name))
        self.panels = read_panels(place / "panels.json")
        self.hashes = {name: panel_hash(tasks) for name, tasks in self.panels.items()}
        self.panel, self.render_mode = panel, render_mode
        self.action_space = Text(_ACTION, charset=string.printable)
        self.observation_space = Text(_OBSERVATION, charset=_characters(self.settings))
        self._tasks = {task.task_id: task for each in self.panels.values() for task in each}
        self._env = environment.factory(self.settings, place)()
        self._over = True
        # `gymnasium.make` and `make_vec` use the spec to create copies of this environment.
        options = {"game": content, "panel": panel, "seed": seed, "folder": folder}
        self.spec = EnvSpec(f"hgrpo/{environment.name}-v0", entry_point=Game, kwargs=options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seed of the tasks drawn in this reset and in later resets without a seed.
            options: `task_id` selects a task; `panel` selects a panel from which to draw a task.

        Raises:
            UserError: the task, panel or option is unknown.
        """
        super().reset(seed=seed)
        options = {"panel": self.panel, "task_id": None} | (options or {})
        if len(options) > 2:
            raise UserError(
                f"reset: got options {', '.join(options)}; only `panel` and `task_id` are supported"
            )
        if options["task_id"] is None:
            panel: list[Task] = _entry(self.panels, options["panel"], "panel")
            self._task = panel[self.np_random.integers(len(panel))]
        else:
            self._task = _entry(self._tasks, options["task_id"], "task")
        opening = self._env.reset(self._task)
        self._goal, self._text, self._turns, self._over = opening.goal, opening.text, 0, False
        return self._text, self._info(admissible=True, progress=0.0, success=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn. Inadmissible actions also count as turns.

        Returns:
            Observation, reward, `terminated` (won or lost), `truncated` (out of turns), info.

        Raises:
            RuntimeError: called before the first `reset`, or after the end of the episode.
        """
        if self._over:
            raise RuntimeError("`step` was called before `reset` or after the end")
        step = self._env.step(action)
        reward, progress = check_step(self._env, step, self._task, self._turns)
        self._turns += 1
        late = self._turns == self.settings.turn_cap and not step.done
        truncated = late or bool(step.info.get("out_of_turns"))
        self._over = truncated or bool(step.done)
        self._text = step.observation.text
        admissible, success = bool(step.info["admissible"]), bool(step.success)
        info = self._info(admissible=admissible, progress=progress, success=success)
        return self._text, reward, self._over and not truncated, truncated, info

    def render(self) -> str | None:
        """Return the last observation if `render_mode` is "ansi"."""
        return self._text if self.render_mode == "ansi" else None

    def _info(self, **last: bool | float) -> dict[str, Any]:
        task = self._task
        names = {"task_id": task.task_id, "task_type": task.task_type}
        names |= {"content_hash": task.content_hash, "goal": self._goal}
        return names | {"admissible_commands": [*self._env.admissible_commands()], **last}


def make_tasks(settings: EnvSettings, seed: int, root: Path) -> Path:
    """Return the folder in `root` with a game's tasks and panels; create them if missing.

    The name of the folder is a hash of the seed, the settings, and the names and sizes of the
    user's files.

    Raises:
        UserError: the tasks cannot be created.
        OSError: a file or folder of the user is missing.
    """
    environment = load(settings.name)
    files = environment.user_files_digest(settings, "assets")
    key = f"{seed} {files} {settings.model_dump_json(exclude={'expert'})}"
    folder = root / f"{settings.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    environment.task_data_files(settings)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        out = Path(scratch) / "tasks"
        out.mkdir()
        panels: dict[str, list[Task]] = {panel: [] for panel in settings.panels.sizes}
        for panel, task in environment.make_tasks(settings, seed, out, Counter()):
            panels[panel].append(task)
        check_filled(panels, settings.panels.sizes)
        write_panels(out / "panels.json", panels)
        try:
            out.rename(folder)
        except OSError:  # another process created it first
            if not folder.exists():
                raise
    return folder


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="hgrpo-games-")


def _characters(settings: EnvSettings) -> frozenset[str]:
    """Characters that can occur in observations: any character if users provide the tasks."""
    if settings.source == "folder":
        return frozenset(map(chr, range(_UNICODE)))
    # U+203A separates WebShop's categories. The dumped settings contain the symbols of Sokoban.
    return frozenset(string.printable + "\u203a" + settings.model_dump_json())


def _entry(entries: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in entries:
        raise UserError(f"unknown {what} {name!r}; available: {', '.join([*entries][:9])}, ...")
    return entries[name]
