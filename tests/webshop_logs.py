"""Pages of a session log as the original site writes them, for the tests."""

import json
from pathlib import Path

GOAL = "i need a red mug, and price lower than 20.00 dollars"
SITE = "http://shop:3000"


def page(kind: str, url: str, goal: str = GOAL, **content: object) -> dict:
    row = {"page": kind, "url": f"{SITE}/{url}", "goal": {"instruction_text": goal}}
    return row | ({"content": content} if content else {})


def index(**kwargs) -> dict:
    return page("index", "s1", **kwargs)


def results(words: list[str], number: int = 1, asins: tuple[str, ...] = ("B01", "B02")) -> dict:
    return page(
        "search_results",
        f"search_results/s1/{words}/{number}",
        keywords=words,
        search_result_asins=list(asins),
        page=number,
    )


def item(asin: str, words: list[str], number: int = 1, **options: str) -> dict:
    # Item pages log the search as it stands in the address: a text, not a list and a number.
    return page(
        "item_page",
        f"item_page/s1/{asin}/{words}/{number}/{options}",
        keywords=str(words),
        page=str(number),
        asin=asin,
        options=options,
    )


def sub(name: str, asin: str, words: list[str], number: int = 1, **options: str) -> dict:
    url = f"item_sub_page/s1/{asin}/{words}/{number}/{name}/{options}"
    return item(asin, words, number, **options) | {"page": "item_sub_page", "url": f"{SITE}/{url}"}


def done(asin: str, reward: object = 0.75, **options: str) -> dict:
    row = page("done", f"done/s1/{asin}/{options}", asin=asin, options=options, price=9.5)
    return row | {"reward": reward, "reward_info": {}}


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
