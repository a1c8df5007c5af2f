"""Base class of environments. Each `hgrpo/games/<name>/__init__.py` defines a subclass.

Methods import their dependencies locally, for two reasons: reading a study then imports no game
engine, and the code hash of a stage covers only the methods that the stage calls.
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

# The (observation, action) pairs of one trajectory, one per turn.
Turns = Sequence[tuple[str, str]]
# An offline rubric takes the goal, the turns, and whether the task was completed. It returns one
# score in [0, 10] per turn.
Score = Callable[[str, Turns, bool], list[float]]


class PanelSizes(Strict):
    """Number of tasks per panel. If null, the panel contains all available tasks."""

    train: int | None = Field(None, gt=0, description="training tasks")
    validation: int | None = Field(None, gt=0, description="validation tasks")
    test: int | None = Field(None, gt=0, description="test tasks")
    # A value of 0 is omitted from `sizes`, so that the cache keys of older results stay valid.
    analysis: int = Field(
        0,
        ge=0,
        exclude_if=operator.not_,
        description="tasks of a fourth panel, used in neither training nor evaluation; 0: no panel",
    )

    @property
    def sizes(self) -> dict[str, int | None]:
        """Sizes of the train, validation and test panels, and of the analysis panel if any."""
        sizes = self.model_dump()
        return {panel: sizes[panel] for panel in PanelSizes.model_fields if panel in sizes}


class FolderOrGenerate(Strict):
    """Base class of settings whose tasks are either read from a folder or generated.

    Subclasses declare the keys `folder` and `generate`.
    """

    # Keys that have an effect only with a folder.
    OF_FOLDERS: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.folder is None) == (self.generate is None):
            raise ValueError("set exactly one of `folder` and `generate`")
        for name in self.OF_FOLDERS:
            refuse_unread(self, (name, self.generate is None, "`folder`"))
        return self


class ExpertSettings(Strict):
    """Settings of the expert, whose trajectories are the SFT data."""

    trajectories: int = Field(20_000, gt=0, description="number of trajectories on the train panel")
    turn_cap: int = Field(40, gt=0, description="maximum turns of an expert trajectory")
    min_return: float | None = Field(
        None,
        allow_inf_nan=False,
        description="minimum return of a demonstration to be used for SFT; null: no minimum",
    )


class EnvSettings(Strict):
    """Settings common to all environments. `name` is the environment's folder in `hgrpo/games`."""

    name: str = Field(description="which environment")
    turn_cap: int = Field(
        gt=0, description="maximum turns of an episode in training and evaluation"
    )
    panels: PanelSizes = Field(PanelSizes(), description="tasks per panel")
    expert: ExpertSettings = Field(
        ExpertSettings(), description="the player that generates the SFT data"
    )

    @property
    def source(self) -> str:
        """Source of the tasks: "generated", or "folder" for the user's files."""
        return "generated"


@dataclass(frozen=True, slots=True)
class Cut:
    """How a tiny model's tokenizer splits an environment's text into candidate tokens.

    Attributes:
        name: the value of `tiny.cut` that selects this way of splitting.
        pieces: regular expression. Each match is a token, and together the matches must cover the
            whole text.
        lowercase: whether text is lowercased before it is split.
        goal_mark: text that precedes the goal in the first observation; "" if goals are split like
            all other text.
        goal_pieces: regular expression that splits goals when the vocabulary is built. It is needed
            if `pieces` matches whole sentences, because each goal would then become one token.
    """

    name: str
    pieces: str
    lowercase: bool = False
    goal_mark: str = ""
    goal_pieces: str = ""


# Splits text into words, whole numbers, and all other characters one by one. A word or a number
# includes the space before it.
PLAIN = Cut("plain", r" ?[A-Za-z']+| ?[0-9]+|.|\n")


@dataclass(frozen=True, slots=True)
class UserFile:
    """A path in the settings that points to the user's own files."""

    stage: str  # the stage that reads the path, "assets" or "expert"
    key: str  # the setting, such as "games.folder"
    path: str  # the value of the setting, or a file in that folder; may contain $VARIABLES
    made: bool = False  # whether `fetch_assets` downloads the path if it is missing
    holds: tuple[str, ...] = ()  # `Path.glob` patterns of files that a folder must contain
    sha256: str | None = None  # expected hash of a downloadable file, if known


@dataclass(frozen=True)
class JudgeText:
    """A judge's primer and offline rubric for one environment.

    Attributes:
        primer: the first part of the prompt. It describes the game and which turns are valuable.
        score: the offline rubric; None if only language models can judge this environment.
        rubric_version: part of the cache key of the rubric's scores. Change it whenever the rules
            change, because the cache would otherwise return outdated scores.
        primer_version: part of the cache key of all judges' scores. Change it whenever the primer
            changes.
    """

    primer: str
    score: Score | None = None
    rubric_version: str = ""
    primer_version: str = ""


class Environment(ABC):
    """The interface through which stages use an environment."""

    # The pydantic model for the environment's settings (files in configs/envs).
    Settings: ClassVar[type[EnvSettings]]
    # Rules by which the tokenizer of a tiny model splits this environment's text.
    cut: ClassVar[Cut] = PLAIN
    # Python packages whose versions are recorded in a result's provenance.
    packages: ClassVar[tuple[str, ...]] = ()
    # Files and folders that `make_tasks` writes and that are read during episodes. Only these
    # files and the panels file are passed to later jobs.
    task_files: ClassVar[tuple[str, ...]] = ()
    # Description of the player in `ceiling`, for the report.
    informed: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Name of the environment, which is the name of its folder."""
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def factory(self, settings: EnvSettings, tasks: Path) -> Callable[[], TextEnv]:
        """Return a function that creates a TextEnv; task paths are relative to `tasks`."""

    @abstractmethod
    def make_tasks(
        self, settings: EnvSettings, seed: int, out: Path, skipped: Counter[str]
    ) -> Iterator[tuple[str, Task]]:
        """Write the tasks to `out`, and yield (split, task) in panel order.

        Args:
            skipped: maps a reason to the number of excluded tasks; updated in place.

        Raises:
            UserError: a user's file is missing or malformed, or too few tasks are available.
        """

    @abstractmethod
    def demonstrate(
        self, settings: EnvSettings, tasks: Path, panels: Panels, seed: int, skipped: Counter[str]
    ) -> Iterator[dict]:
        """Yield the expert's trajectories as rows (see `hgrpo.games.demonstration.play`).

        Args:
            panels: maps a split to its tasks. The expert plays those of "train".
            skipped: maps a reason to the number of excluded trajectories; updated in place.
        """

    def ceiling(
        self, settings: EnvSettings, tasks: Path, panel: list[Task], seed: int
    ) -> list[dict] | None:
        """One row per episode of a player with privileged information; None if unsupported."""
        return None

    def task_data_files(self, settings: EnvSettings) -> list[dict]:
        """Download missing data files for `make_tasks`; return name, size and SHA-256 of each."""
        return []

    def demonstration_data_files(self, settings: EnvSettings) -> list[dict]:
        """Download missing data files for `demonstrate`; return name, size and SHA-256 of each."""
        return []

    def user_files(self, settings: EnvSettings) -> list[UserFile]:
        """The user's own files in these settings."""
        return []

    def user_files_digest(self, settings: EnvSettings, stage: str) -> str | None:
        """Hash (16 hex digits) of the names and sizes of the user's files that a stage reads.

        The hash ignores the contents of files, because it is computed in every plan and a folder
        may hold gigabytes. It also ignores paths marked `made` (see `UserFile`), because their
        files may be downloaded later.

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
        """Extras in pyproject.toml that these settings require, besides `train` and `workflow`."""
        return ()

    def lacks(self, capability: str) -> bool:
        """Whether the subclass does not implement the optional method named `capability`."""
        return getattr(type(self), capability) is getattr(Environment, capability)

    def worths(self, env: TextEnv) -> dict[str, float]:
        """For each admissible command, the increase in the final score if it is chosen.

        Raises:
            UserError: the environment does not implement this method.
        """
        raise self._lack("worths", "oracle")

    def exact_state(self, env: TextEnv) -> tuple[Hashable, Hashable]:
        """Return the current question and all facts that determine later rewards and questions.

        Two states of a game with the same question must have the same admissible commands. The
        environment must be `Forkable` and deterministic.

        Raises:
            UserError: the environment does not implement this method.
        """
        raise self._lack("exact_state", "exact")

    def judge_text(self) -> JudgeText:
        """Return the primer for a judge, with the offline rubric if there is one.

        Raises:
            UserError: the environment has no judge text.
        """
        raise self._lack("judge_text", "judge")

    def _lack(self, method: str, credit: str) -> UserError:
        return UserError(
            f"environment {self.name!r}: credit.kind {credit!r} requires `{method}` in "
            f"hgrpo/games/{self.name}/__init__.py"
        )
