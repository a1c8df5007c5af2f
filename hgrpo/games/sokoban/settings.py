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
        raise ValueError("expected seven distinct printable characters")
    return symbols


class GenerateSettings(Strict):
    """Settings of generated levels. The size of a room includes its border of walls."""

    rows: int = Field(6, ge=5, le=16, description="rows of a room, including its border")
    columns: int = Field(6, ge=5, le=16, description="columns of a room, including its border")
    boxes: int = Field(1, ge=1, le=4, description="boxes (and targets) per level")
    lengths: Bounds = Field(
        (2, 10),
        description="[low, high] length of a level's shortest solution, in actions; the task "
        "types are three equal bands of this range",
    )

    @model_validator(mode="after")
    def _three_bands(self) -> Self:
        low, high = self.lengths
        if low < 1 or high - low < 2:
            raise ValueError(
                f"lengths: [{low}, {high}]: the range must begin at 1 or higher and contain at "
                "least three lengths"
            )
        return self


class SplitPlaces(Strict):
    """Path of the file or folder with the levels of each split, relative to `folder`."""

    train: str = Field("train", description="training levels")
    validation: str = Field("valid", description="validation levels")
    test: str = Field("test", description="test levels")


class LevelSettings(FolderOrGenerate):
    """Settings of the levels, which come from a folder or from the generator."""

    OF_FOLDERS = ("leave_out_unsolvable",)
    folder: str | None = Field(
        None, description="folder of levels as XSB text, e.g. Boxoban's; may contain $VARIABLES"
    )
    splits: SplitPlaces = Field(
        SplitPlaces(), description="file, or folder of .txt and .xsb files, for each split"
    )
    leave_out_unsolvable: bool = Field(
        False,
        description="exclude and count levels that have no solution within `actions` actions, or "
        "too many boards to search; false: such a level is an error",
    )
    generate: GenerateSettings | None = Field(None, description="settings of the generator")


class SokobanPanels(PanelSizes):
    """Number of levels per panel. With null, the panel contains all levels of its split."""

    train: int | None = Field(4000, gt=0, description="training levels")
    validation: int | None = Field(200, gt=0, description="validation levels")
    test: int | None = Field(500, gt=0, description="test levels")


class SokobanExpert(ExpertSettings):
    """Settings of the expert, which knows the shortest solution but adds useless actions."""

    turn_cap: int = Field(5, gt=0, description="maximum turns of an expert trajectory")
    single: Share = Field(0.7, description="probability that a turn has only one action")
    detour: Share = Field(0.2, description="probability of a step to a random free neighbor cell")
    waste: Share = Field(0.1, description="probability of an action that is blocked")

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if self.detour + self.waste > 1:
            raise ValueError(
                f"detour: {self.detour:g} and waste: {self.waste:g}: the sum of these "
                "probabilities must not exceed 1"
            )
        return self


class SokobanSettings(EnvSettings):
    """Settings of the game: limits, text format, rewards and levels."""

    name: Literal["sokoban"] = Field(description="which environment")
    turn_cap: int = Field(
        5, gt=0, description="maximum turns of an episode in training and evaluation"
    )
    actions: int = Field(
        10,
        gt=0,
        description="maximum actions of an episode; an episode that is unsolved after them is lost",
    )
    actions_per_turn: int = Field(2, gt=0, le=4, description="maximum actions per reply")
    view: View = Field(
        "grid", description="format of observed boards: a grid of symbols, coordinates, or both"
    )
    symbols: Annotated[str, AfterValidator(_seven_symbols)] = Field(
        "#_OX√PS",
        description="seven characters: wall, floor, target, box, box on target, player, player on "
        "target",
    )
    penalties: Penalties = Field(
        "fair",
        description="ragen: each action costs 0.1, so that doing nothing is cheap. fair: a lost "
        "episode costs as much as if all actions were used. Both: an invalid reply costs 0.1",
    )
    levels: LevelSettings = Field(
        LevelSettings(generate=GenerateSettings()), description="source of the levels"
    )
    panels: SokobanPanels = Field(SokobanPanels(), description="levels per panel")
    expert: SokobanExpert = Field(SokobanExpert(), description="player that generates SFT data")

    @property
    def source(self) -> str:
        return "generated" if self.levels.generate is not None else "folder"

    @property
    def lengths(self) -> tuple[int, int]:
        """Minimum and maximum length (in actions) of the shortest solution of a level."""
        generate = self.levels.generate
        return (1, self.actions) if generate is None else generate.lengths

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        most = self.turn_cap * self.actions_per_turn
        if self.actions > most:
            raise ValueError(
                f"actions: {self.actions} actions do not fit into {self.turn_cap} turns of up to "
                f"{self.actions_per_turn} actions; reduce `actions` or increase `turn_cap`"
            )
        if self.expert.turn_cap > self.turn_cap:
            raise ValueError(
                f"expert.turn_cap: {self.expert.turn_cap} exceeds the episode's `turn_cap: "
                f"{self.turn_cap}`; reduce `expert.turn_cap`"
            )
        generate = self.levels.generate
        if generate is not None:
            if generate.lengths[1] > self.actions:
                raise ValueError(
                    f"levels.generate.lengths: solutions of up to {generate.lengths[1]} actions "
                    f"exceed `actions: {self.actions}`; reduce the upper bound"
                )
            if None in self.panels.model_dump().values():
                raise ValueError(
                    "panels: generated levels require a size; null is allowed only with a folder"
                )
        return self
