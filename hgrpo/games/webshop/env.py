"""WebShop as a TextEnv. Environments with the same assets share one shop per process."""

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
    """Open the goals in a folder of assets, once per process."""
    return GoalList(folder / GOALS)


class WebshopEnv(PickledByReplay):
    """An environment for shopping sessions. `Task.path` is an index in the file of goals.

    The reward of a purchase is in [0, 1], and 1 counts as success. All other steps have reward 0.
    `Observation.goal` is the instruction, which the initial search page also contains.

    Args:
        assets: folder with the catalogue, its search index and the goals.
    """

    def __init__(self, assets: Path | str, settings: WebshopSettings = _DEFAULT) -> None:
        self._arguments = (assets, settings)
        self.assets, self._settings = Path(assets), settings
        self._session: Session | None = None
        self._task: Task | None = None
        self._played: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start `task`; raise UserError if the assets are invalid or do not contain the task."""
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
        """The current session; raises RuntimeError before the first reset."""
        if self._session is None:
            raise RuntimeError("there is no session before `reset`")
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
        """Create an independent environment in the same state, which shares the shop."""
        twin = self._twin()
        if self._session is not None:
            twin._session = self._session.fork()
        return twin

    def admissible_commands(self) -> list[str]:
        """The possible clicks on the current page. Searches are also admissible, but not listed."""
        return [f"click[{text}]" for text in self.session.clicks]

    def situation(self) -> tuple[str, str]:
        """Return two fingerprints: of the page with chosen options, and of all clickable texts."""
        session = self.session
        # The state includes the ASIN, because two products can have identical pages.
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
