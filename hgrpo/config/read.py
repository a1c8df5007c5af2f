"""Read YAML files into pydantic models; report each mistake on one line with file and key."""

import contextlib
import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from hgrpo.errors import UserError, did_you_mean, one_line
from hgrpo.games.user_path import user_text

Model = TypeVar("Model", bound=BaseModel)


_SUGGESTION = re.compile("; (did you mean|known:) ")


class SectionError(ValueError):
    """Validation errors of a section whose pydantic model depends on one of its keys.

    A validator raises this error, and `validate` reports each mistake on a separate line.

    Args:
        model: the pydantic model of the section.
        error: the validation error of this model.
        also: valid keys that are not fields of the model, for suggestions in messages.
    """

    def __init__(self, model: type[BaseModel], error: ValidationError, also: Iterable[str] = ()):
        self.model, self.mistakes, self.also = model, error.errors(), tuple(also)
        super().__init__("; ".join(self.lines(())))

    def lines(self, place: tuple) -> list[str]:
        """One line per mistake; `place` is the path of keys to the section."""
        return [_render(self.model, details, place, self.also) for details in self.mistakes]


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader that rejects repeated keys, octal numbers and sexagesimal numbers."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key!r}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node):
        """Reject integers such as 011 and 1:30, which YAML parses as 9 and 90."""
        if re.match(r"[-+]?0[0-7_]+$|.*:", node.value):
            read = super().construct_yaml_int(node)
            raise yaml.constructor.ConstructorError(
                None, None, f"{node.value}: YAML reads this as {read}", node.start_mark
            )
        return super().construct_yaml_int(node)


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_yaml_int)


def read_yaml(path: Path) -> dict:
    """Read a YAML file; UserError if it is missing or not a valid mapping."""
    if not path.exists():
        raise UserError(f"{path}: no such file{_neighbours(path)}")
    try:
        loaded = yaml.load(user_text(path), Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: an invalid date such as 2024-02-30.
        raise UserError(f"{path}: not a YAML file ({one_line(error)})") from None
    if not isinstance(loaded, dict):
        kind = "an empty file" if loaded is None else type(loaded).__name__
        raise UserError(f"{path}: expected a mapping, not {kind}")
    return loaded


def read_value(text: str, source: str) -> object:
    """Parse `text` as a YAML value, such as a number, a list or a boolean.

    Raises:
        UserError: the text is not valid YAML. The message begins with `source`.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, ValueError) as error:
        problem = getattr(error, "problem", None) or one_line(error)
        raise UserError(f"{source}: {text}: not a valid YAML value ({problem})") from None


def for_snakemake(text: str) -> str:
    """Quote text for `snakemake --config`, so that Snakemake reads it unchanged.

    Snakemake strips quotes from both ends of a value, and then parses it as YAML. If this would
    change the text, it is returned as a list with one item.
    """
    with contextlib.suppress(UserError):
        if read_value(text.strip("'\""), "") == text:
            return text
    return "['" + text.replace("'", "''") + "']"


def validate(model: type[Model], data: Mapping[str, object], source: str) -> Model:
    """Build `model` from `data`.

    Raises:
        UserError: one line "<source>: <key>: <problem>" per mistake.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [line for details in error.errors() for line in _lines(model, details)]
        raise UserError("\n".join(f"{source}: {line}" for line in lines)) from None


def merge(base: Mapping[str, object], changes: Mapping[str, object]) -> dict:
    """A copy of `base` with `changes`: nested sections are merged, other values are replaced."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            value = merge(merged[key], value)
        merged[key] = value
    return merged


def check_name(content: Mapping, path: Path) -> None:
    """Raise UserError if the `name` in a file differs from the file name without its extension."""
    if (name := content.get("name", path.stem)) != path.stem:
        raise UserError(f"{path}: name: {name!r} differs from the file name {path.stem!r}")


def _neighbours(path: Path) -> str:
    others = path.parent.glob(f"*{path.suffix or '.yaml'}")
    return did_you_mean(path.stem, (other.stem for other in others))


def _lines(model: type[BaseModel], details: Mapping) -> list[str]:
    inner = details.get("ctx", {}).get("error")
    if isinstance(inner, SectionError):
        return inner.lines(details["loc"])
    return [_render(model, details)]


def _render(
    model: type[BaseModel], details: Mapping, place: tuple = (), also: Iterable[str] = ()
) -> str:
    location = details["loc"]
    key = ".".join(map(str, (*place, *location)))
    if details["type"] == "extra_forbidden":
        known = [*_fields(model, location[:-1]), *(also if len(location) == 1 else ())]
        sections = [name for name in model.model_fields if location[-1] in _fields(model, (name,))]
        if sections:
            return f"{key}: unknown key; it belongs to {' or '.join(sections)}"
        return f"{key}: unknown key{did_you_mean(str(location[-1]), known)}"
    if details["type"] == "missing":
        return f"{key}: required, but missing"
    message = details["msg"].removeprefix("Value error, ")
    if details["type"] != "value_error":
        message = message[0].lower() + message[1:]
    value = details["input"]
    secret = model.model_config.get("hide_input_in_errors")
    instead = ""
    if not secret and not isinstance(value, Mapping | BaseModel):
        instead = ", but it is empty" if value is None else f", not {value!r}"
        # Omit the index of a list item, because the message contains the item's value.
        while location and isinstance(location[-1], int):
            location = location[:-1]
        key = ".".join(map(str, (*place, *location)))
        if _SUGGESTION.search(message):  # put the value before the suggestion
            message, instead = f"{value!r}: {message}", ""
    if not key:  # A check of the whole file failed; its message already contains the keys.
        return f"{message}{instead}"
    # The message of a section's check begins with the key.
    named = re.match(r"\w+", message)
    inside = named is not None and named[0] in _fields(model, location)
    return f"{key}{'.' if inside else ': '}{message}{instead}"


def _fields(model: type[BaseModel], location: tuple) -> list[str]:
    for part in location:
        if isinstance(part, int):
            continue  # a list index: `model` is already the model of the items
        field = model.model_fields.get(str(part))
        if field is None:
            return []
        section = [
            kind
            for kind in (field.annotation, *get_args(field.annotation))
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        ]
        if not section:
            return []
        model = section[0]
    return list(model.model_fields)
