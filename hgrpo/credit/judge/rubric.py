"""The offline rubric: a judge by rules, for machines without a language model to ask.

It reads the prompt a language model would read (`prompts.py`) and nothing else. Every environment
has rules of its own (`rubric_alfworld.py`, `rubric_webshop.py`); the scores are absolute, so that
trajectories of a group compare.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from hgrpo.credit.judge.record import Record, RubricError, read
from hgrpo.credit.judge.rubric_alfworld import alfworld
from hgrpo.credit.judge.rubric_webshop import webshop

MODEL = "offline-rubric"
RUBRICS: dict[str, Callable[[str, Record], list[float]]] = {
    "alfworld": alfworld,
    "webshop": webshop,
}


def version(folder: Path) -> str:
    """16 hex digits of the rules in a folder: a hash of what reads a prompt and scores it."""
    files = [folder / "record.py", *sorted(folder.glob("rubric*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


VERSION = version(Path(__file__).parent)
"""Part of the cache's key, so that other rules never get these scores."""


def judge(text: str) -> list[list[float]]:
    """Scores of every turn of every trajectory in a prompt's user message.

    Raises:
        RubricError: the text holds no trajectory, or one of an environment without a rubric.
    """
    environment, goal, records = read(text)
    if environment not in RUBRICS:
        raise RubricError(f"the offline rubric knows no environment {environment!r}")
    return [RUBRICS[environment](goal, record) for record in records]
