"""Settings of WebShop: its products, its goals, its panels and its scripted shopper."""

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
            raise ValueError(f"bounds must satisfy {least} <= low <= high <= {most}, not {bounds}")
        return bounds

    return AfterValidator(check)


class CatalogueSettings(Strict):
    """Generated products and instructions, in the published format; all bounds are inclusive."""

    products: int = Field(2000, gt=0, le=10_000_000, description="products in the shop")
    departments: Annotated[tuple[Literal[DEPARTMENTS], ...], AfterValidator(distinct)] = Field(
        DEPARTMENTS, description="departments of the shop"
    )
    family: Annotated[tuple[int, int], _within(1, 12)] = Field(
        (3, 6),
        description="[low, high] near-duplicates: products of one type that differ in one or two "
        "attributes, options, brand or price; the last family may be cut short",
    )
    attributes: Annotated[tuple[int, int], _within(1, 8)] = Field(
        (2, 5), description="[low, high] attributes of a product"
    )
    option_names: Annotated[tuple[int, int], _within(0, 3)] = Field(
        (0, 2), description="[low, high] choices of a product, such as color and size"
    )
    option_values: Annotated[tuple[int, int], _within(1, 5)] = Field(
        (2, 4), description="[low, high] values of each choice"
    )
    instructed: Share = Field(
        1.0, description="probability that a product has a synthetic instruction"
    )
    human: Share = Field(
        0.2, description="probability that a product has an instruction in a shopper's words"
    )


class ProductsSettings(FolderOrGenerate):
    """Where products come from: either official files or the generator."""

    OF_FOLDERS = ("download", "items_file", "attributes_file", "human_file", "limit")
    folder: str | None = Field(
        None, description="folder of the official data files, e.g. $WEBSHOP_DATA"
    )
    download: bool = Field(
        False,
        description="download official files that `folder` lacks, and check that the others are "
        "the official ones",
    )
    items_file: str = Field("items_shuffle.json", description="the products, in `folder`")
    attributes_file: str = Field(
        "items_ins_v2.json", description="attributes and synthetic instructions, in `folder`"
    )
    human_file: str = Field(
        "items_human_ins.json", description="people's instructions, in `folder`"
    )
    limit: int | None = Field(
        None, gt=0, description="products read from the head of the file; null for all"
    )
    generate: CatalogueSettings | None = Field(None, description="settings of the generator")


class PanelsSettings(PanelSizes):
    """Goals of each panel. By default those of the usual split; repeated goals are left out."""

    test: int = Field(500, gt=0, description="test goals")
    validation: int = Field(1000, gt=0, description="validation goals")
    train: int | None = Field(None, gt=0, description="training goals; null for all that remain")
    apart: bool = Field(
        False, description="leave out goals whose product is in another panel already"
    )


class HabitsSettings(Strict):
    """Habits of the scripted reader; they decide how poor its demonstrations are."""

    forget_word: Share = Field(
        0.2, description="probability that a word of the instruction is left out of the search"
    )
    random_pick: Share = Field(
        0.2, description="probability that the product to open is drawn at random instead"
    )
    skip_option: Share = Field(
        0.2, description="probability that an option the instruction names is not chosen"
    )
    look: Share = Field(0.2, description="probability of reading a product's features")
    content_with: Share = Field(
        0.8, description="share of the instruction's words that a product must show to be bought"
    )
    patience: int = Field(3, ge=1, description="products opened before the best is bought")


class ShopperSettings(ExpertSettings):
    """The shopper whose trajectories are the data of supervised fine-tuning.

    It is a script, or people whose recorded actions are replayed.
    """

    recorded: str | None = Field(
        None,
        description="people's trajectories, e.g. $WEBSHOP_DATA/all_trajs.zip: session logs or the "
        "imitation file, as .jsonl, as .zip or as a folder; null for the scripted shopper",
    )
    trajectories: int = Field(
        20_000,
        gt=0,
        description="trajectories played on the train panel; of people's, the first ones",
    )
    turn_cap: int = Field(15, gt=0, description="maximum turns of an expert trajectory")
    knows: Literal["instruction", "product"] = Field(
        "instruction",
        description="what the scripted shopper knows: what an agent knows, or the product itself "
        "with its title (the oracle)",
    )
    habits: HabitsSettings = Field(
        HabitsSettings(), description="habits of the scripted shopper that knows the instruction"
    )

    @model_validator(mode="after")
    def _read(self) -> "ShopperSettings":
        scripted = self.recorded is None
        refuse_unread(self, ("knows", scripted, "a scripted shopper, without `recorded`"))
        reads_habits = scripted and self.knows == "instruction"
        if not reads_habits and self.habits != HabitsSettings():
            raise ValueError("habits: read only with knows `instruction`, without `recorded`")
        return self


class WebshopSettings(EnvSettings):
    """A file of configs/envs for WebShop."""

    name: Literal["webshop"] = Field(description="which environment")
    turn_cap: int = Field(15, gt=0, description="turns of an episode in training and evaluation")
    observation: Literal["text", "text_rich"] = Field(
        "text", description="pages as pieces with [SEP] between, or with buttons marked"
    )
    repeat_instruction: bool = Field(
        True, description="every page repeats the instruction, as the original's do"
    )
    show_attributes: bool = Field(False, description="products have a tab of attributes")
    goals: Literal["synthetic", "human", "both"] = Field(
        "synthetic", description="who wrote the instructions"
    )
    products: ProductsSettings = Field(
        ProductsSettings(generate=CatalogueSettings()), description="where products come from"
    )
    panels: PanelsSettings = Field(PanelsSettings(), description="goals of each panel")
    expert: ShopperSettings = Field(ShopperSettings(), description="the shopper to be imitated")

    @property
    def source(self) -> str:
        """Where the products come from: "generated" or "folder"."""
        return "generated" if self.products.generate is not None else "folder"

    @property
    def data_names(self) -> tuple[str, ...]:
        """Names of the files in `products.folder` that the shop is made of; none if generated."""
        products = self.products
        if products.folder is None:
            return ()
        people = () if self.goals == "synthetic" else (products.human_file,)
        return (products.attributes_file, products.items_file, *people)
