"""Writes the commands that repeat a study, or repeat it with more seeds."""

from collections.abc import Mapping, Sequence

DEFAULT_STUDY = "bakeoff"  # the Makefile's
SEEDS = (11, 23, 31, 37, 43)
# With fewer seeds than the first number, a study should have as many as the second.
WANTED = ((2, 3), (5, 5))


def command(study: Mapping, overridden: Sequence[str], seeds: Sequence[int] = ()) -> str:
    """The command that makes a study's results.

    Args:
        study: the resolved study, with the keys name, seeds, rounds and methods.
        overridden: those of the keys seeds, rounds and methods whose values are not the file's.
        seeds: seeds in place of the study's.
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
    return " ".join(parts)


def more_seeds(seeds: Sequence[int]) -> list[int]:
    """The seeds, and as many more as a firmer answer needs; empty if there are enough."""
    wanted = next((enough for few, enough in WANTED if len(seeds) < few), 0)
    new = [seed for seed in SEEDS if seed not in seeds]
    return [*seeds, *new[: wanted - len(seeds)]] if wanted else []


def _list(values: Sequence[object]) -> str:
    text = " ".join(map(str, values))
    return f'"{text}"' if " " in text else text
