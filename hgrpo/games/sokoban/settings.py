"""The keys of a file of configs/envs for Sokoban."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hgrpo.config.bounds import Bounds, Share
from hgrpo.config.strict import Strict
from hgrpo.games.environment import EnvSettings, ExpertSettings, FolderOrGenerate, PanelSizes

View = Literal["grid", "coord", "grid_coord"]
Penalties = Literal["fair", "ragen"]


def _seven_symbols(symbols: str) -> str:
    if len(set(symbols)) != 7 or len(symbols) != 7 or not symbols.isprintable():
        raise ValueError("seven different printable characters were expected")
    return symbols


class GenerateSettings(Strict):
    """Levels that are drawn; the border of walls counts as part of the room."""

    rows: int = Field(6, ge=5, le=16, description="rows of a room, with its walls")
    columns: int = Field(6, ge=5, le=16, description="columns of a room, with its walls")
    boxes: int = Field(1, ge=1, le=4, description="boxes, and targets, of a level")
    lengths: Bounds = Field(
        (2, 10),
        description="[low, high] actions of a level's shortest solution; three equal bands of it "
        "are the task types",
    )

    @model_validator(mode="after")
    def _three_bands(self) -> Self:
        low, high = self.lengths
        if low < 1 or high - low < 2:
            raise ValueError(
                f"lengths: [{low}, {high}]: three lengths from 1 on were expected, for three bands"
            )
        return self


class SplitPlaces(Strict):
    """File, or folder of files, of each split below `folder`."""

    train: str = Field("train", description="training levels")
    validation: str = Field("valid", description="validation levels")
    test: str = Field("test", description="test levels")


class LevelSettings(FolderOrGenerate):
    """Where levels come from: either the user's folder or the generator."""

    OF_FOLDERS = ("leave_out_unsolvable",)
    folder: str | None = Field(
        None, description="levels as XSB text, such as Boxoban's; may hold $VARIABLES"
    )
    splits: SplitPlaces = Field(
        SplitPlaces(), description="file, or folder of .txt and .xsb files, of each split"
    )
    leave_out_unsolvable: bool = Field(
        False,
        description="leave out, and count, levels of a folder without a solution within `actions`, "
        "or with too many boards to look for one; otherwise such a level stops the run",
    )
    generate: GenerateSettings | None = Field(None, description="settings of the generator")


class SokobanPanels(PanelSizes):
    """Levels of each panel; null takes every level of a folder."""

    train: int | None = Field(4000, gt=0, description="training levels")
    validation: int | None = Field(200, gt=0, description="validation levels")
    test: int | None = Field(500, gt=0, description="test levels")


class SokobanExpert(ExpertSettings):
    """A player who knows the shortest solution, but wastes moves."""

    turn_cap: int = Field(5, gt=0, description="maximum turns of an expert trajectory")
    single: Share = Field(0.7, description="probability that a turn has only one action")
    detour: Share = Field(
        0.2, description="probability that an action is a step to any free cell beside the player"
    )
    waste: Share = Field(0.1, description="probability that an action runs against a wall or box")

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if self.detour + self.waste > 1:
            raise ValueError(
                f"detour: {self.detour:g} and waste: {self.waste:g}: at most one of them happens, "
                "so the sum of their probabilities may not be above 1"
            )
        return self


class SokobanSettings(EnvSettings):
    """The budget, the text and the rewards of a game, and its levels."""

    name: Literal["sokoban"] = Field(description="which environment")
    turn_cap: int = Field(5, gt=0, description="turns of an episode in training and evaluation")
    actions: int = Field(10, gt=0, description="actions of an episode, after which it is lost")
    actions_per_turn: int = Field(2, gt=0, le=4, description="most actions that a reply may name")
    view: View = Field(
        "grid",
        description="a state as a picture of symbols, as coordinates, or as both",
    )
    symbols: Annotated[str, AfterValidator(_seven_symbols)] = Field(
        "#_OX√PS",
        description="seven characters: wall, floor, target, box, box on target, player, player on "
        "target",
    )
    penalties: Penalties = Field(
        "fair",
        description="fair: a lost episode pays for its whole budget of actions, however many it "
        "took. ragen: an action costs 0.1, so that doing nothing costs less. A reply that is "
        "not understood costs 0.1 in both",
    )
    levels: LevelSettings = Field(
        LevelSettings(generate=GenerateSettings()), description="where levels come from"
    )
    panels: SokobanPanels = Field(SokobanPanels(), description="levels of each panel")
    expert: SokobanExpert = Field(SokobanExpert(), description="the player to be imitated")

    @property
    def source(self) -> str:
        return "generated" if self.levels.generate is not None else "folder"

    @property
    def lengths(self) -> tuple[int, int]:
        """Shortest and longest solution, in actions, that a level may need."""
        generate = self.levels.generate
        return (1, self.actions) if generate is None else generate.lengths

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        most = self.turn_cap * self.actions_per_turn
        if self.actions > most:
            raise ValueError(
                f"actions: {self.actions} do not fit in {self.turn_cap} turns of "
                f"{self.actions_per_turn}"
            )
        if self.expert.turn_cap > self.turn_cap:
            raise ValueError(
                f"expert.turn_cap: {self.expert.turn_cap} turns, but an episode has {self.turn_cap}"
            )
        generate = self.levels.generate
        if generate is not None:
            if generate.lengths[1] > self.actions:
                raise ValueError(
                    f"levels.generate.lengths: a solution of {generate.lengths[1]} actions does "
                    f"not fit in {self.actions}"
                )
            if None in self.panels.model_dump().values():
                raise ValueError("panels: generated levels need a size; null is for folders")
        return self
