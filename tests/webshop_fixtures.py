"""A shop of a dozen products, written by hand, for the tests."""

from pathlib import Path

from hgrpo.games.base import Task
from hgrpo.games.webshop.env import GOALS
from hgrpo.games.webshop.records import Goal, Item, Product
from hgrpo.games.webshop.shop import CATALOGUE, build_index
from hgrpo.games.webshop.tables import goal_hash, write_catalogue, write_goals

MUG, POT = 0, 1


def items() -> list[Item]:
    """A mug, a pot, and ten candles that fill a page of results and one more."""
    made = [
        Item(
            MUG,
            Product(
                asin="B0MUG",
                title="Steel Travel Mug",
                description="Keeps tea warm.",
                bullet_points=("easy clean lid",),
                prices=(20.0,),
                category="kitchen",
                query="travel mugs",
                product_category="Kitchen \u203a Drinks \u203a Mugs",
                options={"color": ("red", "blue"), "size": ("small", "large")},
                attributes=("leak proof",),
            ),
            20.0,
            ("steel", "travel", "mug"),
        ),
        Item(
            POT,
            Product(
                asin="B0POT",
                title="Clay Tea Pot",
                description="",
                bullet_points=(),
                prices=(30.0, 50.0),
                category="kitchen",
                query="tea pots",
                product_category="Kitchen \u203a Drinks \u203a Pots",
                options={},
                attributes=("hand made",),
            ),
            41.5,
            ("clay", "tea", "pot"),
        ),
    ]
    for number in range(11):
        candle = Product(
            asin=f"B0CAN{number}",
            title=f"Candle {number}",
            description="Smells of wax.",
            bullet_points=("burns long",),
            prices=(5.0,),
            category="garden",
            query="candles",
            product_category="Garden \u203a Lights",
            options={},
            attributes=("burns long",),
        )
        made.append(Item(len(made), candle, 5.0, ("candle",)))
    return made


GOAL_LIST = [
    Goal(
        MUG,
        "Find me leak proof mugs with color: red, and size: large, "
        "and price lower than 30.00 dollars",
        ("leak proof", "easy clean"),
        (("color", "red"), ("size", "large")),
        30.0,
    ),
    Goal(
        POT, "i want a hand made pot, and price lower than 60.00 dollars", ("hand made",), (), 60.0
    ),
    Goal(MUG, "a blue mug, and price lower than 40.00 dollars", ("leak proof",), ("blue",), 40.0),
]


def write_shop(folder: Path) -> list[Task]:
    """Write the shop into `folder`; its tasks in the order of `GOAL_LIST`."""
    folder.mkdir(parents=True, exist_ok=True)
    stock = items()
    write_catalogue(folder / CATALOGUE, stock)
    build_index(folder)
    write_goals(folder / GOALS, GOAL_LIST)
    return [
        Task(
            f"goal-{i}", str(i), goal_hash(goal, stock[goal.row]), stock[goal.row].product.category
        )
        for i, goal in enumerate(GOAL_LIST)
    ]
