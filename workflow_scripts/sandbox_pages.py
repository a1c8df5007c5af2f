"""Generate docs/sandbox/rules.md and docs/sandbox/runs.md from the code and configs/sandbox.

Example:
    python workflow_scripts/sandbox_pages.py
"""

import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Need, Rule
from hgrpo.sandbox.studies.pieces import rule_classes
from hgrpo.sandbox.studies.study import SandboxStudy, read_study, resolve

FORMULAS = "hgrpo.formulas"
# Modules whose functions are not formulas.
_PLAIN = {f"{FORMULAS}.{name}" for name in ("batch", "rule", "tensors")}
DOCS, STUDIES = Path("docs/sandbox"), Path("configs/sandbox")
_TITLES = {
    "rl": "One reward (rl)",
    "opd": "Distillation (opd)",
    "vpo": "Sets of answers (vpo)",
    "pedagogy": "A teacher and a student (pedagogy)",
}
_RULES = """\
# Rules of the sandbox

The tables describe all update rules. "The original sandbox" is the one whose commands this sandbox
accepts.
Column `kept and changed` compares a rule with its sources. If a formula has no source, column
`sources` shows those of the formulas that it uses.

A run that does not meet a requirement is rejected. Requirements in *italics* are softer: a run that
does not meet them equals another arm, or one of its settings has no effect. Such a run is rejected
only if `allow_degenerate` is false.

`workflow_scripts/sandbox_pages.py` generates this page from the code.
"""
_RUNS = """\
# Runs of the sandbox

This page lists the arms of every study. For each arm it shows the settings that differ from the
study's base settings. An arm that several studies share runs once.

`workflow_scripts/sandbox_pages.py` generates this page from
[configs/sandbox](../../configs/sandbox).
"""
_LINK = re.compile(r"https?://[^\s,)\]]+")


def main() -> None:
    """Write both pages."""
    (DOCS / "rules.md").write_text(rules_page(), encoding="utf-8")
    (DOCS / "runs.md").write_text(
        runs_page({p.stem: p for p in sorted(STUDIES.glob("*.yaml"))}), encoding="utf-8"
    )


def rules_page() -> str:
    """The text of docs/sandbox/rules.md."""
    parts = [_RULES]
    for piece, title in _TITLES.items():
        needs = importlib.import_module(f"hgrpo.sandbox.{piece}.settings").NEEDS
        parts.append(f"## {title}\n")
        parts.append(
            "| rule | what it does | formulas | sources | kept and changed | settings | needs |"
        )
        parts.append("|---|---|---|---|---|---|---|")
        parts += [_rule(rule, needs) for rule in kinds.of_piece(piece).values()]
        parts.append("")
    return "\n".join(parts)


def _rule(rule: type[Rule], needs: Mapping[str, Need]) -> str:
    used = list(formulas(rule))
    links = dict.fromkeys(link for f in used for link in _links(f))
    first, _, rest = " ".join(inspect.getdoc(rule).split()).partition(". ")
    cells = (
        f"`{rule.__name__}`",
        f"{first.removesuffix('.')}.",
        "<br>".join(f"`{f.__module__.rpartition('.')[2]}.{f.__name__}`" for f in used),
        "<br>".join(links),
        rest,
        "<br>".join(f"`{key}` {field.get_default()}" for key, field in rule.model_fields.items()),
        "<br>".join(_need(needs[name]) for name in rule.needs),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _need(need: Need) -> str:
    return f"*{need.text}*" if need.degenerate else need.text


def formulas(rule: type[Rule]) -> Iterator[Callable]:
    """The formulas that a rule's methods call, directly or through helper functions.

    For a formula without a link to its source, the formulas that it calls are also yielded.
    """
    methods = {name: value for each in reversed(rule.__mro__) for name, value in vars(each).items()}
    waiting = [each for each in methods.values() if _counts(each)]
    ours, seen = set(waiting), set()
    while waiting:
        function = waiting.pop(0)
        if function in seen:
            continue
        seen.add(function)
        is_formula = function not in ours and _is_formula(function)
        if is_formula:
            yield function
        if not (is_formula and _links(function)):
            waiting += [each for each in _used(function) if _counts(each)]


def _counts(function: object) -> bool:
    module = getattr(function, "__module__", "")
    return inspect.isfunction(function) and module.startswith(FORMULAS) and module not in _PLAIN


def _is_formula(function: Callable) -> bool:
    """Whether a function is public and not only a part of a term."""
    is_public = function.__name__[0].isalpha()
    return is_public and "seen" not in inspect.signature(function).parameters


def _used(function: Callable) -> Iterator[Callable]:
    """The functions to which a function refers, directly or through a mapping of functions."""
    for name in _names(function.__code__):
        named = function.__globals__.get(name)
        for each in named.values() if isinstance(named, Mapping) else (named,):
            if inspect.isfunction(inspect.unwrap(each)):
                yield inspect.unwrap(each)


def _names(code: CodeType) -> list[str]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*code.co_names, *(name for each in inner for name in _names(each))]


def _links(function: Callable) -> list[str]:
    """Links in the docstring of a formula or, if it has none, of its module."""
    of_function = _LINK.findall(inspect.getdoc(function) or "")
    of_module = _LINK.findall(inspect.getmodule(function).__doc__ or "")
    return [link.rstrip(".") for link in of_function or of_module]


def runs_page(studies: Mapping[str, Path]) -> str:
    """The text of docs/sandbox/runs.md; `studies` maps names of studies to their files."""
    read = {name: read_study(path) for name, path in studies.items()}
    parts = [_RUNS]
    parts += ["| study | experiment | arms | seeds | tested metric |", "|---|---|---|---|---|"]
    parts += [
        f"| [`{name}`](#{name}) | {each.piece} | {len(each.overrides())} | {each.seeds} | "
        f"{each.metric.text} |"
        for name, each in read.items()
    ]
    for name, each in read.items():
        parts.append(_study(name, each, studies[name]))
    return "\n".join(parts) + "\n"


def _study(name: str, study: SandboxStudy, path: Path) -> str:
    lines = [f"\n## {name}\n", f"{study.question}\n", f"Base settings: {_settings(study.base)}\n"]
    lines += ["| arm | changes | code of its rule |", "|---|---|---|"]
    for label, settings in resolve(study, str(path)).items():
        changes = study.overrides()[label]
        rules = [f"`{each.removeprefix('hgrpo.formulas.')}`" for each in rule_classes(settings)]
        lines.append(f"| {label} | {_settings(changes)} | {', '.join(rules)} |")
    return "\n".join(lines)


def _settings(settings: Mapping[str, Any]) -> str:
    short = {key: _short(value) for key, value in settings.items()}
    return ", ".join(f"`{key}: {value}`" for key, value in short.items()) or "the defaults"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value == tuple(range(value[0], value[0] + len(value))):
        return f"{value[0]} to {value[-1]}"
    return value if isinstance(value, str) else json.dumps(value).replace("|", "\\|")


if __name__ == "__main__":
    main()
