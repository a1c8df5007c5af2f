"""The goals of a shop on disk: an Arrow file with one row per goal, shared by all processes."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from hgrpo.envs.webshop.arrow_rows import ArrowRows, write_rows
from hgrpo.envs.webshop.records import Goal, Item

_TEXTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
    [
        ("row", pa.int32()),
        ("text", pa.string()),
        ("attributes", _TEXTS),
        # Null for a person's goal, whose options have no names.
        ("option_names", _TEXTS),
        ("option_values", _TEXTS),
        ("price_limit", pa.float64()),
    ]
)


def write_goals(path: Path, goals: Iterable[Goal]) -> None:
    """Write goals in order."""
    write_rows(path, _SCHEMA, map(_record, goals))


class GoalList(ArrowRows):
    """Gives the goal at each index; raises as `ArrowRows`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, "file of goals")

    def texts(self) -> Iterator[str]:
        """The goals' texts, in order."""
        for batch in self._batches:
            yield from batch.column("text").to_pylist()

    def goal(self, number: int) -> Goal:
        """The goal at index `number`; raises as `record`."""
        record = self.record(number)
        names, values = record.pop("option_names"), record.pop("option_values")
        options = tuple(values) if names is None else tuple(zip(names, values, strict=True))
        attributes = tuple(record.pop("attributes"))
        return Goal(**record, attributes=attributes, options=options)


def goal_hash(goal: Goal, item: Item) -> str:
    """SHA-256 (hex) of a goal and of the product that it was made from."""
    asked = goal.text, goal.attributes, goal.options, goal.price_limit
    content = json.dumps((item.product.asin, item.price, *asked))
    return hashlib.sha256(content.encode()).hexdigest()


def _record(goal: Goal) -> dict:
    named = [option for option in goal.options if isinstance(option, tuple)]
    synthetic = len(named) == len(goal.options)
    return {
        "row": goal.row,
        "text": goal.text,
        "attributes": goal.attributes,
        "option_names": [name for name, _ in named] if synthetic else None,
        "option_values": [value for _, value in named] if synthetic else goal.options,
        "price_limit": goal.price_limit,
    }
