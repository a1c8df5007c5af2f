"""Summarises the provenance of the results from the snapshots that the stages write."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from hgrpo.errors import UserError
from hgrpo.games.user_path import user_text

STATED = ("packages", "revision", "code", "python", "hardware", "system")


def read_mapping(path: Path) -> dict:
    """Read a JSON or YAML file; UserError if it is missing, unreadable, or not a mapping."""
    try:
        text = user_text(Path(path))
        loaded = json.loads(text) if Path(path).suffix == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: neither JSON nor YAML ({error})") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{path}: a mapping was expected")
    return loaded


def provenance_rows(snapshots: Mapping[str, Sequence[Mapping]]) -> list[tuple[str, list]]:
    """One row per stage, with its name and every distinct value of each fact.

    Several values mean that the stage ran on several machines or with several versions. `snapshots`
    maps stages to their snapshots, which hold the facts at the top level or under "provenance".
    """
    rows = []
    for stage, of_stage in snapshots.items():
        facts: dict[str, dict[str, None]] = {}  # fact -> its values, each once, in order
        for snapshot in of_stage:
            stated = snapshot.get("provenance", snapshot)
            for key in STATED:
                if stated.get(key) not in (None, {}, ""):
                    facts.setdefault(key, {})[_text(stated[key])] = None
        if facts:
            rows.append((stage, [(key, list(values)) for key, values in facts.items()]))
    return rows


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in sorted(value.items()) if item is not None)
    return str(value)
