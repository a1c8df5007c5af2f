"""Settings of WebShop: products, goals, panels and the scripted shopper."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hgrpo.config.bounds import Share, distinct
from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.games.environment import EnvSettings, ExpertSettings, FolderOrGenerate, PanelSizes

_NAMES = "kitchen garden beauty grocery electronics fashion toys sports office pets tools travel"
DEPARTMENTS = tuple(_NAMES.split())


def _within(least: int, most: int) -> AfterValidator:
    def check(bounds: tuple[int, int]) -> tuple[int, int]:
        if not least <= bounds[0] <= bounds[1] <= most:
            raise ValueError(f"expected bounds with {least} <= low <= high <= {most}, got {bounds}")
        return bounds

    return AfterValidator(check)


class CatalogueSettings(Strict):
    """Settings of generated products and instructions; all bounds are inclusive."""

    products: int = Field(2000, gt=0, le=10_000_000, description="number of products in the shop")
    departments: Annotated[tuple[Literal[DEPARTMENTS], ...], AfterValidator(distinct)] = Field(
        DEPARTMENTS, description="departments of the shop"
    )
    family: Annotated[tuple[int, int], _within(1, 12)] = Field(
        (3, 6),
        description="[low, high] products per family of near-duplicates, which differ in one or "
        "two attributes, options, brand or price; the last family may be smaller",
    )
    attributes: Annotated[tuple[int, int], _within(1, 8)] = Field(
        (2, 5), description="[low, high] attributes per product"
    )
    option_names: Annotated[tuple[int, int], _within(0, 3)] = Field(
        (0, 2), description="[low, high] options per product, such as color and size"
    )
    option_values: Annotated[tuple[int, int], _within(1, 5)] = Field(
        (2, 4), description="[low, high] values per option"
    )
    instructed: Share = Field(
        1.0, description="probability that a product has a synthetic instruction"
    )
    human: Share = Field(
        0.2, description="probability that a product has a human-style instruction"
    )


class ProductsSettings(FolderOrGenerate):
    """Settings of the products, which come from official files or from the generator."""

    OF_FOLDERS = ("download", "items_file", "attributes_file", "human_file", "limit")
    folder: str | None = Field(
        None, description="folder of the official data files, e.g. $WEBSHOP_DATA"
    )
    download: bool = Field(
        False,
        description="download official files that `folder` does not contain; verify existing ones",
    )
    items_file: str = Field("items_shuffle.json", description="file of products in `folder`")
    attributes_file: str = Field(
        "items_ins_v2.json", description="file of attributes and synthetic instructions in `folder`"
    )
    human_file: str = Field("items_human_ins.json", description="file of human instructions")
    limit: int | None = Field(None, gt=0, description="number of products to read; null for all")
    generate: CatalogueSettings | None = Field(None, description="settings of the generator")


class PanelsSettings(PanelSizes):
    """Goals per panel, by default as in the original's split. Duplicate goals are excluded."""

    test: int = Field(500, gt=0, description="test goals")
    validation: int = Field(1000, gt=0, description="validation goals")
    train: int | None = Field(None, gt=0, description="training goals; null for all remaining ones")
    apart: bool = Field(
        False, description="exclude goals whose product is already in another panel"
    )


class HabitsSettings(Strict):
    """Habits of the scripted shopper `Reader`, which determine how good its demonstrations are."""

    forget_word: Share = Field(
        0.2, description="probability of omitting a word of the instruction from the search"
    )
    random_pick: Share = Field(0.2, description="probability of opening a random product")
    skip_option: Share = Field(0.2, description="probability of not choosing a requested option")
    look: Share = Field(0.2, description="probability of reading a product's features")
    content_with: Share = Field(
        0.8, description="minimum share of the instruction's words on the pages of a bought product"
    )
    patience: int = Field(
        3, ge=1, description="maximum number of products opened before buying the best one"
    )


class ShopperSettings(ExpertSettings):
    """Settings of the shopper whose trajectories are the SFT data.

    The shopper is either scripted, or replays the recorded actions of humans.
    """

    recorded: str | None = Field(
        None,
        description="human trajectories (session logs or the imitation file) as .jsonl, .zip or "
        "folder, e.g. $WEBSHOP_DATA/all_trajs.zip; null for the scripted shopper",
    )
    trajectories: int = Field(
        20_000,
        gt=0,
        description="number of trajectories on the train panel; if recorded, the first ones",
    )
    turn_cap: int = Field(15, gt=0, description="maximum turns of an expert trajectory")
    knows: Literal["instruction", "product"] = Field(
        "instruction",
        description="what the scripted shopper knows: only the instruction, as an agent does, or "
        "also the goal's product and its title (the oracle)",
    )
    habits: HabitsSettings = Field(
        HabitsSettings(), description="habits of the scripted shopper with `knows: instruction`"
    )

    @model_validator(mode="after")
    def _read(self) -> "ShopperSettings":
        scripted = self.recorded is None
        refuse_unread(self, ("knows", scripted, "a scripted shopper, without `recorded`"))
        reads_habits = scripted and self.knows == "instruction"
        if not reads_habits and self.habits != HabitsSettings():
            raise ValueError("habits: requires `knows: instruction` and `recorded: null`")
        return self


class WebshopSettings(EnvSettings):
    """Settings of WebShop (configs/envs)."""

    name: Literal["webshop"] = Field(description="which environment")
    turn_cap: int = Field(
        15, gt=0, description="maximum turns of an episode in training and evaluation"
    )
    observation: Literal["text", "text_rich"] = Field(
        "text", description="page format: texts separated by [SEP], or with buttons marked"
    )
    repeat_instruction: bool = Field(
        True, description="repeat the instruction on every page, as in the original"
    )
    show_attributes: bool = Field(False, description="add a tab of attributes to products")
    goals: Literal["synthetic", "human", "both"] = Field(
        "synthetic", description="origin of the instructions"
    )
    products: ProductsSettings = Field(
        ProductsSettings(generate=CatalogueSettings()), description="source of the products"
    )
    panels: PanelsSettings = Field(PanelsSettings(), description="goals per panel")
    expert: ShopperSettings = Field(
        ShopperSettings(), description="the shopper that generates the SFT data"
    )

    @property
    def source(self) -> str:
        """Source of the products: "generated", or "folder" for official files."""
        return "generated" if self.products.generate is not None else "folder"

    @property
    def data_names(self) -> tuple[str, ...]:
        """Names of the files to read from `products.folder`; empty for a generated shop."""
        products = self.products
        if products.folder is None:
            return ()
        people = () if self.goals == "synthetic" else (products.human_file,)
        return (products.attributes_file, products.items_file, *people)
