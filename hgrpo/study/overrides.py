"""Parse command-line overrides of a study and of its environment, model and method files.

All keys of the resolved study except names can be overridden. Examples are `seeds`, and nested keys
such as `training.lr`, `env.turn_cap`, `model.system` and `methods.Vine.credit.continuations`.
Snakemake does not allow dots in keys of `--config`, so nested keys are assigned in the key `set`:

    snakemake --config study=bakeoff seeds=11,23 set="training.lr=1e-4 evaluation.test_games=100"
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType
from typing import get_args, get_origin

from pydantic import BaseModel

from hgrpo.config.read import for_snakemake, merge, read_value
from hgrpo.errors import UserError, did_you_mean

# `SET` is the key for assignments. `OF_THE_RUN` lists the keys of `--config` that no study has.
SET = "set"
OF_THE_RUN = ("study",)
# Sections of the resolved study that come from other files.
NAMED = ("env", "model", "methods")
_KEY = re.compile(r"\w[\w-]*(\.[\w-]+)*")
# An assignment ends where the next one begins. It may contain blanks and quoted text.
_ASSIGNMENT = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\S|\s+(?!\s|\w[\w.-]*=))+""")


def read_assignments(words: Iterable[str]) -> dict[str, str]:
    """Parse words KEY=VALUE into a mapping.

    Raises:
        UserError: a word is not an assignment, a key is repeated, or the study's name is empty.
    """
    assignments: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise UserError(f"expected KEY=VALUE, not {word!r}")
        if key == "study" and not value:
            raise UserError("study=: expected the name of a study, such as study=bakeoff")
        if key in assignments:
            raise UserError(f"{key}: duplicate key")
        assignments[key] = value
    return assignments


def parse_overrides(
    overrides: Mapping[str, object],
    model: type[BaseModel],
    section: str = "",
    arms: Iterable[str] = (),
) -> dict:
    """Parse overrides into nested sections with typed values.

    Args:
        overrides: maps keys, possibly with dots, to values from the command line. If a list is
            given as text, commas or blanks separate its items ("11,23 31").
        model: the pydantic model of the file.
        section: prefix of the keys on the command line, such as "env.".
        arms: names of known methods, for suggestions.

    Raises:
        UserError: a key is unknown or malformed, or a value is empty or not YAML.
    """
    known = [name for name in model.model_fields if name != "name"]
    parsed: dict = {}
    for inside, value in flat(overrides).items():
        key, (first, *inner) = section + inside, inside.split(".")
        if first not in known:
            others = () if section else (SET, *OF_THE_RUN)
            nearest = did_you_mean(first, [*known, *others])
            nearest = "; names cannot be changed" if first == "name" else nearest
            nearest = f"; did you mean 'methods.{key}'?" if inner and first in arms else nearest
            raise UserError(f"command line: {key}: unknown key{nearest}")
        # Snakemake parses `methods=` as None, and `methods=null` as the text "null".
        if value is None or value == "":
            raise UserError(f"command line: {key}=: expected a value; remove {key}= or add a value")
        change = _typed(value, key, _kinds_of(model, [first, *inner]))
        for name in reversed(inner):
            change = {name: change}
        parsed = merge(parsed, {first: change})
    return parsed


def of_files(overrides: Mapping[str, object]) -> tuple[dict, dict[str, dict]]:
    """Separate overrides of the study's file from those of other files, grouped by section."""
    study, files = {}, {}
    for key, value in flat(overrides).items():
        for name, each in _dotted(key, value).items():
            section, _, inner = name.partition(".")
            named = inner and section in NAMED
            (files.setdefault(section, {}) if named else study)[inner if named else name] = each
    return study, files


def _dotted(key: str, value: object) -> dict[str, object]:
    """Flatten an override such as `env={turn_cap: 50}` to dotted keys; keep all other overrides."""
    if key in NAMED and isinstance(value, str) and value.startswith("{"):
        value = read_value(value, f"command line: {key}")
    if key.split(".")[0] not in NAMED or not isinstance(value, Mapping):
        return {key: value}
    inner = [_dotted(f"{key}.{name}", each) for name, each in value.items()]
    return {name: each for keys in inner for name, each in keys.items()}


def by_method(
    overrides: Mapping[str, object], methods: Iterable[str], others: Collection[str]
) -> dict[str, dict[str, object]]:
    """Group overrides such as `Vine.alpha` by method. Errors may suggest names in `others`."""
    known, by = sorted(methods, key=len, reverse=True), {}
    for key, value in overrides.items():
        method = next((name for name in known if key.startswith(f"{name}.")), None)
        if method is None:
            name = key.split(".")[0]
            nearest = did_you_mean(name, [*known, *others])
            nearest = "; add it to `methods` first" if name in others else nearest
            wrong = f"not a method of the study's file{nearest}"
            wrong = "expected a key of the method, such as alpha" if name in known else wrong
            raise UserError(f"command line: methods.{key}: {wrong}")
        by.setdefault(method, {})[key.removeprefix(f"{method}.")] = value
    return by


def flat(overrides: Mapping[str, object]) -> dict[str, object]:
    """Return the overrides, with the key `set` replaced by the assignments in its value.

    Raises:
        UserError: the value of `set` is not a list of assignments, or a key is repeated.
    """
    plain = {key: value for key, value in overrides.items() if key != SET}
    assigned = _of_set(overrides.get(SET))
    for key in plain.keys() & assigned.keys():
        raise UserError(f"command line: {SET}: {key}: duplicate key")
    return plain | assigned


def _of_set(value: object) -> dict[str, str]:
    try:
        return read_assignments(_ASSIGNMENT.findall(_from_yaml(value)))
    except UserError as error:
        raise UserError(f"command line: {SET}: {error}") from None


def _from_yaml(value: object) -> str:
    """Restore the original text of `set` if Snakemake has already parsed the text as YAML."""
    # Snakemake parses "endpoint={budget: 512}" as YAML with the key "endpoint={budget".
    text = ": ".join(*value.items()) if isinstance(value, Mapping) else value or ""
    if isinstance(text, str) and text.startswith("['"):
        text = read_value(text, SET)
    return text.strip() if isinstance(text, str) else " ".join(map(str, text))


def _typed(value: object, key: str, kinds: Sequence[object]) -> object:
    """Convert text to a typed value. In a section, which is a mapping, convert every value."""
    if isinstance(value, Mapping):
        return {name: _typed(inner, f"{key}.{name}", ()) for name, inner in value.items()}
    is_list = any(get_origin(kind) is list for kind in kinds)
    if is_list and not isinstance(value, list | tuple) and not str(value).startswith("["):
        return [part for part in re.split(r"[,\s]+", str(value)) if part]
    # Do not parse a value of type str as YAML, because text with a colon would become a section.
    is_text = bool(kinds) and {*kinds} <= {str, NoneType} and value != "null"
    if not isinstance(value, str) or (is_text and not value.startswith(("'", '"'))):
        return value
    return read_value(value, f"command line: {key}")


def _kinds_of(model: type[BaseModel], names: Sequence[str]) -> list:
    """The possible types of the key with the path `names`; an empty list for an unknown key."""
    first, *inner = names
    field = model.model_fields.get(first)
    kinds = _kinds(field.annotation) if field else []
    # The user chooses the next name in a mapping of sections, e.g. `kl` in `axes.kl.values`.
    if inner and get_origin(field and field.annotation) is dict:
        inner = inner[1:]
    if not inner:
        return kinds
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [kind for section in sections for kind in _kinds_of(section, inner)]


def _kinds(annotation: object) -> list:
    members = [] if get_origin(annotation) is list else get_args(annotation)
    return [kind for each in members for kind in _kinds(each)] or [annotation]


def changes(before: Mapping, after: Mapping) -> dict[str, object]:
    """Map each dotted key whose value differs between the two mappings to its value in `after`."""
    differences: dict[str, object] = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            differences |= {f"{key}.{inner}": value for inner, value in changes(old, new).items()}
        elif old != new:
            differences[key] = new
    return differences


def as_config(settings: Sequence[str]) -> list[str]:
    """Convert words KEY=VALUE for `snakemake --config`; dotted keys are moved into `set`."""
    pairs = [word.partition("=") for word in settings]
    assigned = [_from_yaml(value) for key, _, value in pairs if key == SET]
    dotted = [f"{key}={value}" for key, _, value in pairs if "." in key]
    plain = [f"{key}={value}" for key, _, value in pairs if key != SET and "." not in key]
    both = " ".join([*assigned, *dotted])
    return [*plain, f"{SET}={for_snakemake(both)}"] if both else plain
