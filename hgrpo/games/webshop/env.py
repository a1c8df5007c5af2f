"""WebShop as a TextEnv; environments of a process with the same assets share one shop."""

from functools import lru_cache
from pathlib import Path

from hgrpo.games.base import Observation, PickledByReplay, Step, Task, check_action, fingerprint
from hgrpo.games.webshop import pages
from hgrpo.games.webshop.potential import potential
from hgrpo.games.webshop.session import Session
from hgrpo.games.webshop.settings import WebshopSettings
from hgrpo.games.webshop.shop import open_shop
from hgrpo.games.webshop.tables import GoalList, goal_hash

GOALS = "goals.arrow"
_DEFAULT = WebshopSettings(name="webshop")


@lru_cache(maxsize=2)
def open_goals(folder: Path) -> GoalList:
    """The goals in a folder of assets, opened once per process."""
    return GoalList(folder / GOALS)


class WebshopEnv(PickledByReplay):
    """Shopping sessions. `Task.path` is the goal's index in the file of goals.

    A purchase gives a reward in [0, 1] and is a success if the reward is 1; all other steps give 0.
    `Observation.goal` is the instruction, which is also part of the initial search page.

    Args:
        assets: folder with the catalogue, its index and the goals.
    """

    def __init__(self, assets: Path | str, settings: WebshopSettings = _DEFAULT) -> None:
        self._arguments = (assets, settings)
        self.assets, self._settings = Path(assets), settings
        self._session: Session | None = None
        self._task: Task | None = None
        self._played: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start `task`; UserError if the assets are invalid or do not contain the task."""
        shop = open_shop(self.assets)
        goal = open_goals(self.assets).goal(int(task.path))
        digest = goal_hash(goal, shop.item(goal.row))
        task.check_content(digest, f"{self.assets / GOALS}: goal {task.path}")
        self._session = Session(shop, goal, self._settings.show_attributes)
        self._task, self._played = task, []
        self._level = potential(self._session)
        return self._observe(opening=True)

    @property
    def session(self) -> Session:
        """The current session; RuntimeError before the first reset."""
        if self._session is None:
            raise RuntimeError("no session before reset")
        return self._session

    def step(self, action: str) -> Step:
        check_action(action)
        session = self.session
        admissible = session.act(action)
        self._played.append(action)
        level = potential(session)
        gain, self._level = level - self._level, level
        paid = 0.0 if session.bought is None else session.bought.total
        return Step(
            observation=self._observe(),
            env_reward=paid,
            progress=gain,
            done=session.bought is not None,
            success=paid == 1.0,
            info={"admissible": admissible},
        )

    def fork(self) -> "WebshopEnv":
        """An independent environment in the same state, sharing the shop."""
        twin = self._twin()
        if self._session is not None:
            twin._session = self._session.fork()
        return twin

    def admissible_commands(self) -> list[str]:
        """The possible clicks on the page; searches are admissible but not listed."""
        return [f"click[{text}]" for text in self.session.clicks]

    def situation(self) -> tuple[str, str]:
        """Fingerprints of the page with the chosen options, and of all clickable texts."""
        session = self.session
        # The ASIN distinguishes products with identical pages.
        texts = [piece.text for piece in session.page if piece.kind != "instruction"]
        opened = [] if session.item is None else [session.item.product.asin]
        state = [*texts, *opened, *sorted(session.chosen.items())]
        return fingerprint(state), fingerprint(session.clickables)

    def _observe(self, opening: bool = False) -> Observation:
        session = self.session
        page = session.page
        if not (opening or self._settings.repeat_instruction):
            page = [piece for piece in page if piece.kind != "instruction"]
        if self._settings.observation == "text_rich":
            text = pages.rich(page, session.chosen, session.opened, session.query)
        else:
            text = pages.text(page)
        return Observation(session.goal.text, text)
