"""Sokoban: a player pushes boxes onto targets, and wrong pushes can be irreversible."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from hgrpo.games.base import Panels, Task, TextEnv
from hgrpo.games.environment import Cut, Environment, JudgeText, UserFile
from hgrpo.games.sokoban.settings import SokobanSettings


class Sokoban(Environment):
    """Sokoban with RAGEN's rules; levels are generated or read from the user's files."""

    Settings = SokobanSettings
    # Each cell (a symbol or coordinates) and each sentence of the rules is one token.
    cut = Cut(
        "sokoban",
        r"[A-Z][a-z]+ [^\n]*[a-z>]\.\n|Turn [0-9]+ of [0-9]+|, actions left: [0-9]+\n|"
        r"Up|Down|Left|Right| \|\| | \([0-9]+, [0-9]+\)\n?|[A-Z][a-z]+[a-z ]*:| none\n|.\n?|\n",
    )
    task_files = ("levels",)
    informed = "a breadth-first search, which wastes no action"

    def factory(self, settings: SokobanSettings, tasks: Path) -> Callable[[], TextEnv]:
        from hgrpo.games.sokoban.env import SokobanEnv

        return lambda: SokobanEnv(tasks, settings)

    def make_tasks(
        self, settings: SokobanSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        from hgrpo.games.sokoban.assets import make

        return make(settings, seed, out, skipped)

    def demonstrate(
        self, settings: SokobanSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter
    ) -> Iterator[dict]:
        from hgrpo.games.sokoban.expert import demonstrate

        return demonstrate(settings, tasks, panels["train"], seed)

    def ceiling(
        self, settings: SokobanSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict]:
        from hgrpo.games.sokoban.expert import ceiling

        return ceiling(settings, tasks, panel, seed)

    def user_files(self, settings: SokobanSettings) -> list[UserFile]:
        folder = settings.levels.folder
        return [] if folder is None else [UserFile("assets", "levels.folder", folder)]

    def judge_text(self) -> JudgeText:
        from hgrpo.games.sokoban.judge import JUDGE_TEXT

        return JUDGE_TEXT


ENVIRONMENT = Sokoban()
