"""Writes figures, each with its CSV, and lists them in an index that pages read."""

import json
from collections.abc import Iterable
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.report.style import Drawing, save

INDEX = "index.json"


def save_all(drawn: Iterable[Drawing], folder: Path) -> list[dict]:
    """Write each drawing, then an index of their names and texts; return the index."""
    index = []
    for drawing in drawn:
        save(drawing, folder)
        index.append({key: text for key, text in vars(drawing).items() if isinstance(text, str)})
    text = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    (folder / INDEX).write_text(text, encoding="utf-8")
    return index


def read_index(folder: Path) -> list[dict]:
    """Read the index that `save_all` wrote; UserError if it is missing or damaged."""
    try:
        return json.loads((folder / INDEX).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{folder}: no {INDEX}; run the stage figures first") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{folder / INDEX}: not an index of figures ({error})") from None
