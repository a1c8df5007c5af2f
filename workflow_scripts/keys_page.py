"""Write docs/keys.md, which lists the type, default and meaning of every key of a config file.

Example:
    python workflow_scripts/keys_page.py docs/keys.md
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hgrpo.atomic import atomic_file
from hgrpo.config.kind_section import KindSection
from hgrpo.credit import kinds as credits
from hgrpo.credit.kinds import CreditConfig
from hgrpo.formulas import kinds as rules
from hgrpo.games import kinds as environments
from hgrpo.learning.method import MethodConfig, ObjectiveConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout import engine_kind as engines
from hgrpo.rollout.settings import EngineConfig
from hgrpo.study.config import StudyConfig, Variant

_KINDS = {CreditConfig: credits, EngineConfig: engines, ObjectiveConfig: rules}
_INTRODUCTION = """\
# Keys

Every key of the files in `configs/`. `make schema` writes this page from the code.

- Only keys marked "required" are mandatory. An unknown key is an error, with a suggestion.
- A *section* is a key with nested keys. `training.lr` is the key `lr` in `training: {lr: 1e-4}`.
- Lists are written in brackets, such as `seeds: [11, 23]`. `null` means no value.
- `python -m hgrpo.cli.config bakeoff` prints a study with the values of all keys.
"""
_FILES = {
    "Study": "`configs/studies/<name>.yaml`. [studies.md](studies.md) lists the studies.",
    "Method": "Keys of `configs/methods/<name>.yaml`. In a study, `variants` overrides them. "
    "[methods.md](methods.md) explains the methods. Kinds of credit without keys are not listed.",
    "Model": "`configs/models/<name>.yaml`. [models.md](models.md) explains the models.",
    "Environment": "`configs/envs/<name>.yaml` with `name: {}`.",
}


@dataclass(frozen=True)
class Section:
    """One table of the page.

    Attributes:
        file: heading for the kind of config file.
        keys: dotted path of the section; "" for the top level of the file.
        kind: the plug-in that the section or its parent configures, such as `kind turnrd` or
            `rule TPO`; "" if there is none.
        model: the section's pydantic model.
    """

    file: str
    keys: str
    kind: str
    model: type[BaseModel]

    @property
    def name(self) -> str:
        """Heading of the section, without the kind of file."""
        return self.keys + (f", {self.kind}" if self.kind else "")

    @property
    def link(self) -> str:
        anchor = re.sub(r"[^\w\- ]", "", f"{self.file} {self.name}".lower()).replace(" ", "-")
        return f"[{self.name}](#{anchor})"


def sections() -> list[Section]:
    """All sections of the configuration files, in the order of docs/keys.md."""
    files = {"Study": StudyConfig, "Method": MethodConfig, "Model": ModelConfig}
    files |= {
        f"Environment {name}": environments.load(name).Settings for name in environments.known()
    }
    return [listed for file, model in files.items() for listed in _within(file, "", "", model)]


def page() -> str:
    """The text of docs/keys.md."""
    listed = sections()
    contents, lines = [], []
    for section in listed:
        if not section.keys:
            inner = ", ".join(
                each.link for each in listed if each.file == section.file and each.keys
            )
            anchor = section.file.lower().replace(" ", "-")
            contents.append(f"- [{section.file}](#{anchor}): {inner}")
            kind, _, name = section.file.partition(" ")
            lines += [f"## {section.file}", "", _FILES[kind].format(name), ""]
        else:
            lines += [f"### {section.file}: {section.name}", "", *_about(section.model)]
        rows = [
            [f"`{name}`", *described(field)] for name, field in section.model.model_fields.items()
        ]
        table = [["key", "type", "default", "meaning"], ["---"] * 4, *rows]
        lines += [*("| " + " | ".join(row) + " |" for row in table), ""]
    return "\n".join([_INTRODUCTION, *contents, "", *lines]).rstrip() + "\n"


def _about(model: type[BaseModel]) -> list[str]:
    """A section's docstring; empty if it only repeats the `kind` of the heading."""
    text = " ".join(model.__doc__.split()).replace("Kept:", "Kept from the paper:")
    return [] if text.startswith("Keys beside") else [text, ""]


def _within(file: str, keys: str, kind: str, model: type[BaseModel]) -> Iterator[Section]:
    """Yield a section and all nested sections that are not empty.

    All stages of `resources` share one section.
    """
    if model.model_fields:
        yield Section(file, keys, kind, model)
    inner: dict[type[BaseModel], list[str]] = {}
    for name, field in model.model_fields.items():
        for each in _models(field.annotation):
            inner.setdefault(each, []).append(name)
    for each, names in inner.items():
        place = f"{keys}.{_joined(names)}".lstrip(".")
        if issubclass(each, KindSection):
            for known in _KINDS[each].known():
                yield from _within(file, place, f"{each.key} {known}", each.settings_model(known))
        elif each is not Variant:
            yield from _within(file, place, kind, each)


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "STAGE"


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """The pydantic models in a type."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)


def described(field: FieldInfo) -> list[str]:
    """Type, default and meaning of a key."""
    cells = [_type(field.annotation, field.metadata), _default(field), field.description or ""]
    return [cell.replace("|", "\\|") for cell in cells]


def _default(field: FieldInfo) -> str:
    if "default:" in (field.description or ""):
        return "see meaning"
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, KindSection):
        return _yaml({value.key: getattr(value, value.key)})
    if isinstance(value, BaseModel):
        stated = value.model_dump(mode="json", exclude_unset=True)
        return _yaml(stated) if stated else ""
    choices = get_args(next(iter(get_args(field.annotation)), None))
    if isinstance(value, tuple) and len(choices) > 2 and set(value) == set(choices):
        return "all of them"
    return _yaml(value)


def _yaml(value: Any) -> str:
    """A value in the syntax of a config file."""
    if value == {}:
        return "none"
    if isinstance(value, dict):
        return "`" + ", ".join(f"{name}: {json.dumps(each)}" for name, each in value.items()) + "`"
    if value == "":
        return "empty"
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _type(kind: Any, limits: list | tuple = ()) -> str:
    """Describe a type in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner = [part for part in parts[1:] if isinstance(part, FieldInfo)]
        return _type(parts[0], [*limits, *(each for field in inner for each in field.metadata)])
    if origin in (Union, UnionType):
        others = [_type(part, limits) for part in parts if part is not NoneType]
        return ", or ".join([*others, *(["`null`"] if NoneType in parts else [])])
    if origin is Literal:
        return ("" if len(parts) == 1 else "one of ") + ", ".join(f"`{part}`" for part in parts)
    if origin is list or (origin is tuple and parts[-1] is Ellipsis):
        return f"list: {_type(parts[0])}"
    if origin is tuple:
        return f"list of {len(parts)}: {_type(parts[0])}"
    if origin is dict:
        return "section"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "section"
    words = {bool: "true or false", int: "whole number", float: "number", str: "text"}[kind]
    # "from 1" reads better than "above 0".
    return (words + _range(limits)).replace("whole number above 0", "whole number from 1")


def _range(limits: list | tuple) -> str:
    """Describe the bounds of a number, such as " above 0, up to 1"."""
    words = {"ge": "from", "gt": "above", "le": "up to", "lt": "below"}
    bounds = [
        f"{word} {getattr(limit, bound):,}"
        for bound, word in words.items()
        for limit in limits
        if getattr(limit, bound, None) is not None
    ]
    return " " + ", ".join(bounds) if bounds else ""


if __name__ == "__main__":
    with atomic_file(Path(sys.argv[1])) as path:
        path.write_text(page(), encoding="utf-8")
