"""ALFWorld: household games in text."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from hgrpo.games.alfworld.settings import AlfworldSettings
from hgrpo.games.base import Panels, Task, TextEnv
from hgrpo.games.environment import Cut, Environment, JudgeText, UserFile

_ENTITY = r"[a-z]+ [0-9]+"


class Alfworld(Environment):
    """ALFWorld with generated or published games. Both kinds of games run in both engines."""

    Settings = AlfworldSettings
    # Texts are split into entities (e.g. "countertop 2") and the phrases between entities.
    cut = Cut(
        name="phrases",
        pieces=rf"{_ENTITY}|(?:(?!{_ENTITY})(?:.|\n))+",
        goal_mark="Your task is to: ",
        goal_pieces=r" ?[a-zA-Z]+|[^a-zA-Z]+",
    )
    packages = ("alfworld",)
    task_files = ("games",)
    informed = "a scripted player that knows where things tend to be"

    def factory(self, settings: AlfworldSettings, tasks: Path) -> Callable[[], TextEnv]:
        from hgrpo.games.alfworld.env import AlfworldEnv

        return lambda: AlfworldEnv(tasks, settings.engine)

    def make_tasks(
        self, settings: AlfworldSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        from hgrpo.games.alfworld.assets import make

        return make(settings, seed, out, skipped)

    def demonstrate(
        self, settings: AlfworldSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter
    ) -> Iterator[dict]:
        from hgrpo.games.alfworld.expert import demonstrate

        return demonstrate(settings, tasks, panels["train"], seed, skipped)

    def ceiling(
        self, settings: AlfworldSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict] | None:
        from hgrpo.games.alfworld.expert import ceiling

        return ceiling(settings, tasks, panel, seed)

    def task_data_files(self, settings: AlfworldSettings) -> list[dict]:
        from hgrpo.games.alfworld.download import fetch_games
        from hgrpo.games.user_path import user_path

        games = settings.games
        return fetch_games(user_path(games.folder, "games.folder")) if games.download else []

    def user_files(self, settings: AlfworldSettings) -> list[UserFile]:
        games = settings.games
        if games.folder is None:
            return []
        splits = games.splits.model_dump().values()
        holds = tuple(f"{split}/**/game.tw-pddl" for split in splits)
        return [UserFile("assets", "games.folder", games.folder, games.download, holds)]

    def extras(self, settings: AlfworldSettings) -> tuple[str, ...]:
        fetches = ("fetch",) if settings.games.download else ()
        return fetches + (("alfworld",) if settings.engine == "textworld" else ())

    def judge_text(self) -> JudgeText:
        from hgrpo.games.alfworld.judge import JUDGE_TEXT

        return JUDGE_TEXT


ENVIRONMENT = Alfworld()
