"""The base class of environments; `hgrpo/games/<name>/__init__.py` holds each subclass.

Every method imports what it needs in its own body. Reading a study therefore imports no game
engine, and a stage's code hash covers only the methods that the stage calls.
"""

import hashlib
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.errors import UserError
from hgrpo.games.base import Panels, Task, TextEnv
from hgrpo.games.user_path import files_below, user_path

# (observation, action) of every turn of one trajectory.
Turns = Sequence[tuple[str, str]]
# An offline rubric: (goal, turns, whether the task was completed) -> a score in [0, 10] per turn.
Score = Callable[[str, Turns, bool], list[float]]


class PanelSizes(Strict):
    """How many tasks each panel has; null takes all available tasks."""

    train: int | None = Field(None, gt=0, description="training tasks")
    validation: int | None = Field(None, gt=0, description="validation tasks")
    test: int | None = Field(None, gt=0, description="test tasks")
    # Excluded if 0: results without this panel keep their keys.
    analysis: int = Field(
        0,
        ge=0,
        exclude_if=operator.not_,
        description="tasks of a fourth panel, which neither training nor evaluation plays; 0: no "
        "such panel",
    )

    @property
    def sizes(self) -> dict[str, int | None]:
        """Panel -> its size, in the order train, validation, test and, unless 0, analysis."""
        sizes = self.model_dump()
        return {panel: sizes[panel] for panel in PanelSizes.model_fields if panel in sizes}


class FolderOrGenerate(Strict):
    """Tasks from the user's `folder` or from the generator; subclasses declare both keys."""

    # Keys that only a folder's tasks use.
    OF_FOLDERS: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.folder is None) == (self.generate is None):
            raise ValueError("give either `folder` or `generate`, and not both")
        for name in self.OF_FOLDERS:
            refuse_unread(self, (name, self.generate is None, "`folder`"))
        return self


class ExpertSettings(Strict):
    """Settings of the expert, whose trajectories are the data of supervised fine-tuning."""

    trajectories: int = Field(20_000, gt=0, description="trajectories played on the train panel")
    turn_cap: int = Field(40, gt=0, description="maximum turns of an expert trajectory")
    min_return: float | None = Field(
        None,
        allow_inf_nan=False,
        description="minimum return of a demonstration; null: no minimum",
    )


class EnvSettings(Strict):
    """Settings that every environment has; `name` is the name of the environment's folder."""

    name: str = Field(description="which environment")
    turn_cap: int = Field(gt=0, description="turns of an episode in training and evaluation")
    panels: PanelSizes = Field(PanelSizes(), description="tasks of each panel")
    expert: ExpertSettings = Field(ExpertSettings(), description="the player to be imitated")

    @property
    def source(self) -> str:
        """Where the tasks come from: "generated", or "folder" for the user's files."""
        return "generated"


@dataclass(frozen=True, slots=True)
class Cut:
    """How the tiny model's tokenizer cuts an environment's text into candidates for its vocabulary.

    Attributes:
        name: the name of this cut in the setting `tiny.cut`.
        pieces: regular expression. Every character of a text must be in a match.
        lowercase: whether text is lowercased first, in training and in use.
        goal_mark: the text after which an opening states the goal; "" if goals are cut like all
            other text.
        goal_pieces: regular expression that cuts goals when the vocabulary is made. Without it, a
            `pieces` that matches whole sentences would make each goal one token.
    """

    name: str
    pieces: str
    lowercase: bool = False
    goal_mark: str = ""
    goal_pieces: str = ""


# Words, whole numbers and single characters. A word or a number includes the space before it.
PLAIN = Cut("plain", r" ?[A-Za-z']+| ?[0-9]+|.|\n")


@dataclass(frozen=True, slots=True)
class UserFile:
    """A path in the settings that leads to the user's own files."""

    stage: str  # the stage that reads the path, "assets" or "expert"
    key: str  # the setting, such as "games.folder"
    path: str  # the setting's value, or a file in the folder that it names; may hold $VARIABLES
    made: bool = False  # whether `fetch_assets` downloads it if it is missing
    holds: tuple[str, ...] = ()  # patterns (`Path.glob`) of what a complete folder must hold
    sha256: str | None = None  # of a file that may be downloaded, if its publisher's is known


@dataclass(frozen=True)
class JudgeText:
    """A judge's primer and offline rubric for one environment.

    Attributes:
        primer: the opening of the prompt: the game, and which turns count more.
        score: the offline rubric; None if only language models can judge this environment.
        rubric_version: part of the key under which the cache stores the rubric's scores. Change it
            with the rules; otherwise the cache returns scores of the old rules.
        primer_version: part of the key of every judge's cached scores. Change it with the primer.
    """

    primer: str
    score: Score | None = None
    rubric_version: str = ""
    primer_version: str = ""


class Environment(ABC):
    """An environment as the stages use it."""

    # The pydantic class that checks the files in configs/envs for this environment.
    Settings: ClassVar[type[EnvSettings]]
    # How the tiny model's tokenizer cuts this environment's text.
    cut: ClassVar[Cut] = PLAIN
    # Python packages whose versions belong in a result's provenance.
    packages: ClassVar[tuple[str, ...]] = ()
    # Files and folders below the `out` of `make_tasks` that an episode reads. Later jobs get only
    # these and the panels file.
    task_files: ClassVar[tuple[str, ...]] = ()
    # The report's name for the player of `ceiling`.
    informed: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Name of the environment, which is the name of its folder."""
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def factory(self, settings: EnvSettings, tasks: Path) -> Callable[[], TextEnv]:
        """Return a function that makes one TextEnv; `Task.path` is relative to `tasks`."""

    @abstractmethod
    def make_tasks(
        self, settings: EnvSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        """Write the tasks below `out`, and yield (split, task) in panel order.

        Args:
            skipped: reason -> number of tasks left out, or with a defect. This method
                adds to it.

        Raises:
            UserError: a user's file is missing or malformed, or there are too few tasks.
        """

    @abstractmethod
    def demonstrate(
        self, settings: EnvSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter[str]
    ) -> Iterator[dict]:
        """Yield the expert's trajectories as rows (see `hgrpo.games.demonstration.play`).

        Args:
            panels: split -> tasks. The expert plays the tasks of "train".
            skipped: as in `make_tasks`, but it counts trajectories.
        """

    def ceiling(
        self, settings: EnvSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict] | None:
        """Episodes, as rows, of a player that knows more than an agent; None if there is none."""
        return None

    def task_data_files(self, settings: EnvSettings) -> list[dict]:
        """Name, size and SHA-256 of the data files for `make_tasks`; may download the files."""
        return []

    def demonstration_data_files(self, settings: EnvSettings) -> list[dict]:
        """Name, size and SHA-256 of the data files for `demonstrate`; may download the files."""
        return []

    def user_files(self, settings: EnvSettings) -> list[UserFile]:
        """The user's own files that these settings name."""
        return []

    def user_files_digest(self, settings: EnvSettings, stage: str) -> str | None:
        """Hash (16 hex digits) of the names and sizes of the user's files that a stage reads.

        The hash ignores contents, because every plan computes it and a folder may hold gigabytes.
        It also ignores paths marked `made` (see `UserFile`): missing files are added there.

        Args:
            settings: the environment's settings.
            stage: "assets" or "expert".

        Returns:
            None if the stage reads no files of the user.

        Raises:
            UserError: a variable in a path is not set.
            OSError: a path does not exist, or a file's size cannot be read.
        """
        files = [f for f in self.user_files(settings) if f.stage == stage and not f.made]
        if not files:
            return None
        digest = hashlib.sha256()
        for file in files:
            for path, name in files_below(user_path(file.path, file.key)):
                digest.update(f"{name}\0{path.stat().st_size}\n".encode())
        return digest.hexdigest()[:16]

    def extras(self, settings: EnvSettings) -> tuple[str, ...]:
        """Extras of pyproject.toml that these settings need beside `train` and `workflow`."""
        return ()

    def lacks(self, capability: str) -> bool:
        """Whether this environment does not override the method `capability` of `Environment`."""
        return getattr(type(self), capability) is getattr(Environment, capability)

    def worths(self, env: TextEnv) -> dict[str, float]:
        """The gain in final score of each admissible command.

        Raises:
            UserError: the environment has no such method.
        """
        raise self._lack("worths", "oracle")

    def exact_state(self, env: TextEnv) -> tuple[Hashable, Hashable]:
        """The state's question, and everything else that later rewards and questions depend on.

        States of one game with the same question have the same admissible commands. The environment
        must be `Forkable`, and nothing in a game may be random.

        Raises:
            UserError: the environment has no such method.
        """
        raise self._lack("exact_state", "exact")

    def judge_text(self) -> JudgeText:
        """Return the primer and the offline rubric, if any, for a judge.

        Raises:
            UserError: the environment has no judge text.
        """
        raise self._lack("judge_text", "judge")

    def _lack(self, method: str, credit: str) -> UserError:
        return UserError(
            f"environment {self.name!r}: credit.kind {credit!r} needs `{method}` in "
            f"hgrpo/games/{self.name}/__init__.py"
        )
