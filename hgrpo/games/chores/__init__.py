"""Chores: the agent puts one object away per turn and is scored only at the end.

Each kind of object has one right place, which is the same in all games. The agent can learn the
place only from scores. The true value of every choice can be computed and compared with credit.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from hgrpo.games.base import Panels, Task, TextEnv
from hgrpo.games.chores.settings import ChoresSettings
from hgrpo.games.environment import Cut, Environment, JudgeText


class Chores(Environment):
    """Generated games. A task is stored as a line of text; episodes therefore read no files."""

    Settings = ChoresSettings
    # To keep turns short, each fixed part of a question is one token.
    cut = Cut("chores", r"Where does the | go\?| ?[A-Za-z']+| ?[0-9]+|.|\n")
    informed = "the housekeeper, who knows every habit"

    def factory(self, settings: ChoresSettings, tasks: Path) -> Callable[[], TextEnv]:
        from hgrpo.games.chores.env import ChoresEnv

        return lambda: ChoresEnv(settings)

    def make_tasks(
        self, settings: ChoresSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        from hgrpo.games.chores.assets import make

        return make(settings, seed)

    def demonstrate(
        self, settings: ChoresSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter
    ) -> Iterator[dict]:
        from hgrpo.games.chores.expert import demonstrate

        return demonstrate(settings, panels["train"], seed)

    def ceiling(
        self, settings: ChoresSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict]:
        from hgrpo.games.chores.expert import ceiling

        return ceiling(settings, panel)

    def judge_text(self) -> JudgeText:
        from hgrpo.games.chores.env import JUDGE_TEXT

        return JUDGE_TEXT

    def worths(self, env: TextEnv) -> dict[str, float]:
        return env.worths()

    def exact_state(self, env: TextEnv) -> tuple[Hashable, Hashable]:
        return env.exact_state()


ENVIRONMENT = Chores()
