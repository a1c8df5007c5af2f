"""Values on the command line in place of those in a study's file.

Any key of a study but its name may be given: `seeds`, or with dots `training.lr`.
Snakemake allows no dot in a key of its `--config`, so there the key `set` takes assignments:

    snakemake --config study=bakeoff seeds=11,23 set="training.lr=1e-4 evaluation.test_games=100"
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel

from hgrpo.config.merge import merge
from hgrpo.config.read import did_you_mean, read_value
from hgrpo.errors import UserError

# The key that holds assignments, and the keys of `--config` that are about the run.
SET = "set"
OF_THE_RUN = ("study", "reuse")
_KEY = re.compile(r"\w+(\.\w+)*")
# An assignment goes on, over blanks and quoted text, to the next one.
_ASSIGNMENT = re.compile(r"""(?:"[^"]*"|'[^']*'|\S|\s+(?!\s|[\w.]+=))+""")


def read_assignments(words: Iterable[str]) -> dict[str, str]:
    """The mapping that words KEY=VALUE make up.

    Raises:
        UserError: a word is no assignment, a key is listed twice, or the study has no name.
    """
    given: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise UserError(f"KEY=VALUE was expected, not {word!r}")
        if key == "study" and not value:
            raise UserError("study=: the name of a study was expected, such as study=bakeoff")
        if key in given:
            raise UserError(f"{key} is given twice")
        given[key] = value
    return given


def parse_overrides(given: Mapping[str, object], study: type[BaseModel]) -> dict:
    """The overrides as part of a study's file: sections are mappings, and values have types.

    Args:
        given: key -> value from a command line. A key may have dots. A value may be text, and the
            text of a list may have commas or blanks between its parts ("11,23 31").
        study: the pydantic model of a study's file.

    Raises:
        UserError: a key is unknown or malformed, or a value is empty or not YAML. The message names
            the key, and the nearest one that exists.
    """
    known = [name for name in study.model_fields if name != "name"]
    parsed: dict = {}
    for key, value in flat(given).items():
        first, *inner = key.split(".")
        if first not in known:
            nearest = did_you_mean(first, [*known, SET, *OF_THE_RUN])
            raise UserError(f"--config {key}: unknown key{nearest}")
        # Snakemake makes None of `methods=`, and the word "null" stays a word.
        if value is None or value == "":
            raise UserError(
                f"{key}=: a value was expected; without {key}=, that of the study's file holds"
            )
        change = _typed(value, key, _is_list(study, [first, *inner]))
        for name in reversed(inner):
            change = {name: change}
        parsed = merge(parsed, {first: change})
    return parsed


def flat(given: Mapping[str, object]) -> dict[str, object]:
    """The same overrides with the assignments in `set` as keys of their own.

    Raises:
        UserError: the value of `set` holds something else, or a key is listed twice.
    """
    plain = {key: value for key, value in given.items() if key != SET}
    assigned = _of_set(given.get(SET))
    for key in plain.keys() & assigned.keys():
        raise UserError(f"--config {SET}: {key} is given twice")
    return plain | assigned


def _of_set(given: object) -> dict[str, str]:
    """The assignments in the value of the key `set`."""
    # Snakemake reads the value as YAML, and "endpoint={budget: 512}" as the key "endpoint={budget".
    text = ": ".join(*given.items()) if isinstance(given, Mapping) else str(given or "")
    try:
        return read_assignments(_ASSIGNMENT.findall(text.strip()))
    except UserError as error:
        raise UserError(f"--config {SET}: {error}") from None


def _typed(value: object, key: str, is_list: bool) -> object:
    """The value that text stands for; Snakemake gives sections as mappings of text."""
    if isinstance(value, Mapping):
        return {name: _typed(inner, f"{key}.{name}", False) for name, inner in value.items()}
    if is_list and not isinstance(value, list | tuple) and not str(value).startswith("["):
        return [part for part in re.split(r"[,\s]+", str(value)) if part]
    return read_value(value, f"--config {key}") if isinstance(value, str) else value


def _is_list(model: type[BaseModel], names: Sequence[str]) -> bool:
    """Whether the key that `names` lead to holds a list."""
    first, *inner = names
    field = model.model_fields.get(first)
    kinds = _kinds(field.annotation) if field else []
    # In a section of sections, such as `axes`, the next name may be any.
    if inner and get_origin(field and field.annotation) is dict:
        inner = inner[1:]
    if not inner:
        return any(get_origin(kind) is list for kind in kinds)
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return any(_is_list(section, inner) for section in sections)


def _kinds(annotation: object) -> list:
    """The types that a field may have: those of a union, or the one annotation."""
    members = [] if get_origin(annotation) is list else get_args(annotation)
    return [kind for each in members for kind in _kinds(each)] or [annotation]


def changes(before: Mapping, after: Mapping) -> dict[str, object]:
    """Key, with dots -> value in `after`, where two studies, as plain JSON types, differ."""
    found: dict[str, object] = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found |= {f"{key}.{inner}": value for inner, value in changes(old, new).items()}
        elif old != new:
            found[key] = new
    return found


def as_config(settings: Sequence[str]) -> list[str]:
    """Words KEY=VALUE for `snakemake --config`: those with a dot in the key go into `set`."""
    pairs = [word.partition("=") for word in settings]
    assigned = [value for key, _, value in pairs if key == SET]
    dotted = [f"{key}={value}" for key, _, value in pairs if "." in key]
    plain = [f"{key}={value}" for key, _, value in pairs if key != SET and "." not in key]
    both = " ".join([*assigned, *dotted])
    return [*plain, f"{SET}={both}"] if both else plain
