"""Settings of ALFWorld: the engine, the games, the panels and the expert."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hgrpo.config.bounds import Bounds, Share, distinct
from hgrpo.config.strict import Strict
from hgrpo.games.environment import EnvSettings, ExpertSettings, FolderOrGenerate, PanelSizes

Room = Literal["kitchen", "bedroom", "bathroom"]
TaskType = Literal[
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]
ROOMS: tuple[Room, ...] = Room.__args__
TASK_TYPES: tuple[TaskType, ...] = TaskType.__args__


class HabitSettings(Strict):
    """Where objects of each type are usually placed; this is the same in all houses and splits."""

    strength: Share = Field(
        0.8, description="probability that an object is in one of the favourite places of its type"
    )
    favourites: int = Field(2, ge=1, le=5, description="favourite receptacle types per object type")
    seed: int = Field(0, description="seed of the favourites; independent of the games' seed")


class GenerateSettings(Strict):
    """Settings of generated games; all bounds are inclusive."""

    rooms: Annotated[tuple[Room, ...], AfterValidator(distinct)] = Field(
        ROOMS, description="possible rooms; a game has one room"
    )
    task_types: Annotated[tuple[TaskType, ...], AfterValidator(distinct)] = Field(
        TASK_TYPES, description="task types, equally frequent as far as the panel size allows"
    )
    receptacles: Bounds = Field((8, 12), description="[low, high] receptacles in a house")
    objects: Bounds = Field((5, 8), description="[low, high] objects in a house, targets included")
    distractors: Bounds = Field(
        (1, 8),
        description="[low, high] objects not required by the task, as far as `objects` allows",
    )
    spare_targets: int = Field(0, ge=0, le=5, description="additional objects of the target's type")
    receptacle_types: Annotated[tuple[str, ...] | None, AfterValidator(distinct)] = Field(
        None, description="allowed receptacle types (CounterTop, Drawer, ...); null for all"
    )
    object_types: Annotated[tuple[str, ...] | None, AfterValidator(distinct)] = Field(
        None, description="allowed object types (Mug, DeskLamp, ...); null for all"
    )
    habits: HabitSettings = Field(HabitSettings(), description="usual places of objects")


class SplitSizes(Strict):
    """The required number of playable games in each split."""

    train: int = Field(gt=0, description="training games")
    validation: int = Field(gt=0, description="validation games")
    test: int = Field(gt=0, description="test games")


class SplitFolders(Strict):
    """Subfolder of `folder` for each split."""

    train: str = Field("train", description="folder of the training games")
    validation: str = Field("valid_seen", description="folder of the validation games")
    test: str = Field("valid_unseen", description="folder of the test games")


class GamesSettings(FolderOrGenerate):
    """Settings of the games, which are read from a folder or generated."""

    OF_FOLDERS = ("download", "expected")
    folder: str | None = Field(
        None, description="folder of games in the published layout, e.g. $ALFWORLD_DATA/json_2.1.1"
    )
    splits: SplitFolders = Field(
        SplitFolders(), description="subfolders of `folder` for the splits"
    )
    download: bool = Field(False, description="download the published games if `folder` has none")
    expected: SplitSizes | None = Field(
        None,
        description="required number of playable games in `folder` for each split, so that scores "
        "are comparable with published ones; null: not checked",
    )
    generate: GenerateSettings | None = Field(None, description="settings of the generator")


class PanelSettings(PanelSizes):
    """Number of games per panel. If null, the panel contains all games of its folder."""

    train: int | None = Field(4000, gt=0, description="training games")
    validation: int | None = Field(200, gt=0, description="validation games")
    test: int | None = Field(1000, gt=0, description="test games")


class SearcherSettings(ExpertSettings):
    """The scripted player (searcher) whose trajectories are the SFT data.

    It has the same observations as an agent. The probabilities below control the data's quality.
    """

    trajectories: int = Field(20_000, gt=0, description="number of trajectories on the train panel")
    turn_cap: int = Field(40, gt=0, description="maximum turns of an expert trajectory")
    order: Literal["listing", "random"] = Field(
        "listing", description="order of visits: as listed in the opening text, or shuffled"
    )
    random_pick: Share = Field(
        0.3, description="probability of choosing the next receptacle at random"
    )
    dawdle: Share = Field(
        0.1, description="probability of an idle look, inventory or examine before each stop"
    )
    revisit: Share = Field(0.05, description="probability of revisiting a searched place")
    close_after_open: Share = Field(
        0.6, description="probability of closing an opened receptacle before leaving"
    )
    walkthrough_share: Share = Field(
        0.0, description="share of `trajectories` that replay the game's stored walkthrough"
    )


class AlfworldSettings(EnvSettings):
    """Settings of ALFWorld (configs/envs)."""

    name: Literal["alfworld"] = Field(description="which environment")
    engine: Literal["native", "textworld"] = Field(
        "native", description="our own engine, or that of the official package (optional extra)"
    )
    turn_cap: int = Field(
        12, gt=0, description="maximum turns of an episode in training and evaluation"
    )
    grammar: Literal["move", "put"] = Field(
        "move",
        description="language of the games: `move X to Y` (alfworld 0.4 and later) or "
        "`put X in/on Y` (earlier, and in json_2.1.1); games of a folder must match",
    )
    games: GamesSettings = Field(
        GamesSettings(generate=GenerateSettings()), description="source of the games"
    )
    panels: PanelSettings = Field(PanelSettings(), description="games per panel")
    expert: SearcherSettings = Field(SearcherSettings(), description="the scripted expert")

    @property
    def source(self) -> str:
        return "generated" if self.games.generate is not None else "folder"

    @model_validator(mode="after")
    def _sized(self) -> "AlfworldSettings":
        if self.games.generate is not None and None in self.panels.model_dump().values():
            raise ValueError(
                "panels of generated games require a size; null is allowed only with a folder"
            )
        return self
