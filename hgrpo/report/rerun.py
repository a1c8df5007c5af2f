"""Writes the commands that repeat a study, or repeat it with more seeds."""

import contextlib
import json
import shlex
from collections.abc import Mapping, Sequence

from hgrpo.config.read import read_value
from hgrpo.errors import UserError

DEFAULT_STUDY = "bakeoff"  # the default of the Makefile
# Keys with a variable of their own in the Makefile; `SET` takes all others.
_VARIABLES = {"seeds", "rounds", "methods"}
SEEDS = (11, 23, 31, 37, 43)
# (2, 3) means: a study with fewer than 2 seeds should have 3.
WANTED = ((2, 3), (5, 5))


def command(study: Mapping, overridden: Mapping[str, object], seeds: Sequence[int] = ()) -> str:
    """The command that makes a study's results.

    Args:
        study: the resolved study, with the keys name, seeds, rounds and methods.
        overridden: key, with dots -> value, where the command line changed the study's file.
        seeds: seeds to use instead of the study's.
    """
    parts = ["make bakeoff"]
    if study["name"] != DEFAULT_STUDY:
        parts.append(f"STUDY={study['name']}")
    if seeds or "seeds" in overridden:
        parts.append(f"SEEDS={_list(seeds or study['seeds'])}")
    if "rounds" in overridden:
        parts.append(f"ROUNDS={study['rounds']}")
    if "methods" in overridden:
        parts.append(f"METHODS={_list(study['methods'])}")
    if others := overridden.keys() - _VARIABLES:
        assigned = " ".join(f"{key}={_text(overridden[key])}" for key in sorted(others))
        parts.append(f"SET={shlex.quote(assigned.replace('$', '$$'))}")  # make reads $ as its own
    return " ".join(parts)


def _text(value: object) -> str:
    """A value as `SET` takes it; text that reads as something else stands in quotes."""
    with contextlib.suppress(UserError):
        if isinstance(value, str) and read_value(value, "") == value:
            return value
    return json.dumps(value)


def more_seeds(seeds: Sequence[int]) -> list[int]:
    """The given seeds and new ones for a firmer answer; empty if the given ones are enough."""
    wanted = next((enough for few, enough in WANTED if len(seeds) < few), 0)
    new = [seed for seed in SEEDS if seed not in seeds]
    return [*seeds, *new[: wanted - len(seeds)]] if wanted else []


def _list(values: Sequence[object]) -> str:
    text = " ".join(map(str, values))
    return f'"{text}"' if " " in text else text
