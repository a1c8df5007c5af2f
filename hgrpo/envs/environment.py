"""The base class of environments; each has a subclass in `hgrpo/envs/<name>/__init__.py`.

Every method imports what it needs inside itself. Reading a study therefore imports no game engine,
and a stage's code hash covers only the methods that the stage calls.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from hgrpo.agent.cut import PLAIN, Cut
from hgrpo.config.strict import Strict
from hgrpo.envs.base import Task, TextEnv
from hgrpo.errors import UserError

# (observation, action) of every turn of one trajectory.
Turns = Sequence[tuple[str, str]]
# An offline rubric: (goal, turns, whether the task was completed) -> one score in 0..10 a turn.
Score = Callable[[str, Turns, bool], list[float]]


class PanelSizes(Strict):
    """How many tasks each panel has; null takes all there are."""

    train: int | None = Field(None, gt=0, description="training tasks")
    validation: int | None = Field(None, gt=0, description="validation tasks")
    test: int | None = Field(None, gt=0, description="test tasks")


class ExpertSettings(Strict):
    """The player whose trajectories are the data of supervised fine-tuning."""

    trajectories: int = Field(20_000, gt=0, description="trajectories played on the train panel")
    turn_cap: int = Field(40, gt=0, description="turns after which a trajectory ends")


class EnvSettings(Strict):
    """Settings of every environment; in a subclass, `name` is the environment's folder."""

    name: str = Field(description="which environment")
    turn_cap: int = Field(gt=0, description="turns of an episode in training and evaluation")
    panels: PanelSizes = Field(PanelSizes(), description="tasks of each panel")
    expert: ExpertSettings = Field(ExpertSettings(), description="the player to be imitated")

    @property
    def source(self) -> str:
        """Where the tasks come from: "generated", or "folder" for the user's files."""
        return "generated"


@dataclass(frozen=True, slots=True)
class UserFile:
    """A path in the settings that leads to the user's own files."""

    stage: str  # the stage that reads the path, "assets" or "expert"
    key: str  # the setting, such as "games.folder"
    path: str  # as the settings give it; it may hold $VARIABLES
    made: bool = False  # whether the stage fetches or makes what is missing


@dataclass(frozen=True)
class JudgeText:
    """What a judge must know about one environment.

    Attributes:
        primer: the prompt's opening: what the game is and which turns count for more.
        score: the offline rubric; None if only language models can judge this environment.
        rubric_version: part of the cache's key for the offline rubric. Change it when a score
            changes, or the cache returns scores of the old rules.
        primer_version: part of the cache's key for every judge. Change it with the primer.
    """

    primer: str
    score: Score | None = None
    rubric_version: str = ""
    primer_version: str = ""


class Environment(ABC):
    """An environment as the stages use it."""

    # Model of the files in configs/envs that name this environment.
    Settings: ClassVar[type[EnvSettings]]
    # How the tiny model's tokenizer cuts this environment's text.
    cut: ClassVar[Cut] = PLAIN
    # Python packages whose versions belong in a result's provenance.
    packages: ClassVar[tuple[str, ...]] = ()
    # Files and folders that `make_tasks` writes and that play reads, relative to `out`. Later jobs
    # get these and the panels file.
    task_files: ClassVar[tuple[str, ...]] = ()
    # A description of the player of `ceiling`.
    informed: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The folder's name."""
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def factory(self, settings: EnvSettings, tasks: Path) -> Callable[[], TextEnv]:
        """A function that makes one game; `tasks` is the folder that `Task.path` is relative to."""

    @abstractmethod
    def make_tasks(
        self, settings: EnvSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        """Write the tasks below `out`, and yield each with its split, in panel order.

        Args:
            skipped: reason -> number of tasks left out or kept with a defect; updated here.

        Raises:
            UserError: a user's file is missing or malformed, or there are too few tasks.
        """

    @abstractmethod
    def demonstrate(
        self,
        settings: EnvSettings,
        tasks: Path,
        panels: Mapping[str, list[Task]],
        seed: int,
        skipped: Counter[str],
    ) -> Iterator[dict]:
        """Yield the expert's trajectories as rows (see `hgrpo.envs.demonstration.play`).

        Args:
            panels: split -> tasks. The expert plays the tasks of "train".
            skipped: as in `make_tasks`, but it counts trajectories.
        """

    def ceiling(
        self, settings: EnvSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict] | None:
        """Rows of a player who knows more than an agent can; None if there is no such player."""
        return None

    def task_data_files(self, settings: EnvSettings) -> list[dict]:
        """Name, size and SHA-256 of each file that `make_tasks` reads; may download the files."""
        return []

    def demonstration_data_files(self, settings: EnvSettings) -> list[dict]:
        """Name, size and SHA-256 of each file that `demonstrate` reads; may download the files."""
        return []

    def user_files(self, settings: EnvSettings) -> list[UserFile]:
        """The user's own files that these settings name."""
        return []

    def lacks(self, capability: str) -> bool:
        """Whether this environment only inherits a method, and does not bring its own."""
        return not any(
            capability in vars(kind) for kind in type(self).__mro__ if kind is not Environment
        )

    def judge_text(self) -> JudgeText:
        """What a judge is told about this environment, and the rules of the offline rubric.

        Raises:
            UserError: the environment has no judge text.
        """
        raise UserError(
            f"environment {self.name!r}: no text for a judge; credit.kind 'judge' needs "
            f"`judge_text` in hgrpo/envs/{self.name}/__init__.py"
        )
