"""Settings of Sokoban (configs/envs)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hgrpo.config.bounds import Bounds, Share
from hgrpo.config.strict import Strict
from hgrpo.games.environment import EnvSettings, ExpertSettings, FolderOrGenerate, PanelSizes

View = Literal["grid", "coord", "grid_coord"]
Penalties = Literal["fair", "ragen"]


def _seven_symbols(symbols: str) -> str:
    if len(set(symbols)) != 7 or len(symbols) != 7 or not symbols.isprintable():
        raise ValueError("must be seven distinct printable characters")
    return symbols


class GenerateSettings(Strict):
    """Generated levels; a room includes its border of walls."""

    rows: int = Field(6, ge=5, le=16, description="rows of a room, including walls")
    columns: int = Field(6, ge=5, le=16, description="columns of a room, including walls")
    boxes: int = Field(1, ge=1, le=4, description="boxes (and targets) per level")
    lengths: Bounds = Field(
        (2, 10),
        description="[low, high] actions of a level's shortest solution, split into three equal "
        "bands as task types",
    )

    @model_validator(mode="after")
    def _three_bands(self) -> Self:
        low, high = self.lengths
        if low < 1 or high - low < 2:
            raise ValueError(
                f"lengths: [{low}, {high}]: must contain at least three lengths from 1 on"
            )
        return self


class SplitPlaces(Strict):
    """File, or folder of files, in `folder` for each split."""

    train: str = Field("train", description="training levels")
    validation: str = Field("valid", description="validation levels")
    test: str = Field("test", description="test levels")


class LevelSettings(FolderOrGenerate):
    """Source of levels: either the user's folder or the generator."""

    OF_FOLDERS = ("leave_out_unsolvable",)
    folder: str | None = Field(
        None, description="levels as XSB text, such as Boxoban's; may hold $VARIABLES"
    )
    splits: SplitPlaces = Field(
        SplitPlaces(), description="file, or folder of .txt and .xsb files, of each split"
    )
    leave_out_unsolvable: bool = Field(
        False,
        description="exclude and count levels of a folder without a solution within `actions`, or "
        "with too many boards to search; otherwise such a level is an error",
    )
    generate: GenerateSettings | None = Field(None, description="settings of the generator")


class SokobanPanels(PanelSizes):
    """Levels per panel; null takes all levels of a folder."""

    train: int | None = Field(4000, gt=0, description="training levels")
    validation: int | None = Field(200, gt=0, description="validation levels")
    test: int | None = Field(500, gt=0, description="test levels")


class SokobanExpert(ExpertSettings):
    """A player that knows the shortest solution, but wastes moves."""

    turn_cap: int = Field(5, gt=0, description="maximum turns of an expert trajectory")
    single: Share = Field(0.7, description="probability of only one action in a turn")
    detour: Share = Field(0.2, description="probability of a step to a random adjacent free cell")
    waste: Share = Field(0.1, description="probability of a blocked action")

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if self.detour + self.waste > 1:
            raise ValueError(
                f"detour: {self.detour:g} and waste: {self.waste:g}: the sum of these "
                "probabilities must not exceed 1"
            )
        return self


class SokobanSettings(EnvSettings):
    """Budget, text, rewards and levels of the game."""

    name: Literal["sokoban"] = Field(description="which environment")
    turn_cap: int = Field(
        5, gt=0, description="maximum turns of an episode in training and evaluation"
    )
    actions: int = Field(
        10, gt=0, description="maximum actions of an episode, after which it is lost"
    )
    actions_per_turn: int = Field(2, gt=0, le=4, description="maximum actions of a reply")
    view: View = Field(
        "grid",
        description="format of a state: a grid of symbols, coordinates, or both",
    )
    symbols: Annotated[str, AfterValidator(_seven_symbols)] = Field(
        "#_OX√PS",
        description="seven characters: wall, floor, target, box, box on target, player, player on "
        "target",
    )
    penalties: Penalties = Field(
        "fair",
        description="ragen: an action costs 0.1, so that doing nothing is cheap. fair: a lost "
        "episode pays for its whole action budget. An invalid reply costs 0.1 in both",
    )
    levels: LevelSettings = Field(
        LevelSettings(generate=GenerateSettings()), description="source of the levels"
    )
    panels: SokobanPanels = Field(SokobanPanels(), description="levels per panel")
    expert: SokobanExpert = Field(SokobanExpert(), description="the player of the SFT data")

    @property
    def source(self) -> str:
        return "generated" if self.levels.generate is not None else "folder"

    @property
    def lengths(self) -> tuple[int, int]:
        """Minimum and maximum length, in actions, of a level's shortest solution."""
        generate = self.levels.generate
        return (1, self.actions) if generate is None else generate.lengths

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        most = self.turn_cap * self.actions_per_turn
        if self.actions > most:
            raise ValueError(
                f"actions: {self.actions} exceeds {self.turn_cap} turns of {self.actions_per_turn} "
                "actions"
            )
        if self.expert.turn_cap > self.turn_cap:
            raise ValueError(
                f"expert.turn_cap: {self.expert.turn_cap} exceeds turn_cap {self.turn_cap}"
            )
        generate = self.levels.generate
        if generate is not None:
            if generate.lengths[1] > self.actions:
                raise ValueError(
                    f"levels.generate.lengths: a solution of {generate.lengths[1]} actions exceeds "
                    f"the budget of {self.actions}"
                )
            if None in self.panels.model_dump().values():
                raise ValueError(
                    "panels: generated levels require a size; null is allowed only with a folder"
                )
        return self
