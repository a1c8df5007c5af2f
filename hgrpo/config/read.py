"""Reading YAML into config models; every mistake becomes one line naming file and key."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from hgrpo.errors import UserError

Model = TypeVar("Model", bound=BaseModel)


class _UniqueKeys(yaml.SafeLoader):
    """SafeLoader that refuses a key standing twice, where YAML would keep the last."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises:
        UserError: the file is missing, is not YAML, repeats a key, or holds no mapping.
    """
    try:
        loaded = yaml.load(path.read_text(), Loader=_UniqueKeys)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file{_neighbours(path)}") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: not a YAML file ({reason})") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{path}: a mapping was expected, not {type(loaded).__name__}")
    return loaded


def validate(model: type[Model], data: Mapping[str, object], source: str) -> Model:
    """Build `model` from `data`.

    Raises:
        UserError: one line per mistake, "<source>: <key>: <what is wrong>", joined by newlines.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [f"{source}: {_render(model, details)}" for details in error.errors()]
        raise UserError("\n".join(lines)) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause with the nearest known words, or the list of them; "" when none is known."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def check_name(config: BaseModel, path: Path) -> None:
    """Raise UserError when the config's `name` is not the stem of its file."""
    if config.name != path.stem:
        raise UserError(f"{path}: name: {config.name!r} is not the file's name, {path.stem!r}")


def _neighbours(path: Path) -> str:
    return did_you_mean(path.stem, (other.stem for other in path.parent.glob(f"*{path.suffix}")))


def _render(model: type[BaseModel], details: Mapping) -> str:
    location = details["loc"]
    key = ".".join(str(part) for part in location) or "(whole file)"
    if details["type"] == "extra_forbidden":
        return f"{key}: unknown key{did_you_mean(str(location[-1]), _fields(model, location[:-1]))}"
    if details["type"] == "missing":
        return f"{key}: required, but not given"
    message = details["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    value = details["input"]
    given = "" if isinstance(value, Mapping | BaseModel) else f", not {value!r}"
    return f"{key}: {message}{given}"


def _fields(model: type[BaseModel], location: tuple) -> list[str]:
    """Names of the fields of the section that `location` leads to."""
    for part in location:
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
