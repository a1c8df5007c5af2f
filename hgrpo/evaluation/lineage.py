"""Reads the summaries of rounds and evaluations to check that a report's arms belong together.

A user can put results of several machines or studies into one folder. Episodes alone do not show
whether an arm started from another supervised policy or was trained with other settings.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hgrpo.errors import UserError


def check_lineage(
    rounds: Sequence[Path], evaluations: Sequence[Path], settings: Mapping[str, str]
) -> None:
    """Refuse rounds and evaluations that do not belong in one report.

    They must meet these conditions:

    - All have the same base model and supervised policy. All rounds have the same number format.
    - A round was trained with the study's settings of its arm.
    - A round started from the policy of the round before, or from the supervised policy.
    - All rounds of an arm ran the same code.
    - An evaluation played the policy that its round wrote.

    Args:
        rounds: summary.json of every trained round.
        evaluations: summary.json of every evaluation.
        settings: arm -> `settings_digest` of the settings with which the study trains the arm.

    Raises:
        UserError: a condition is not met, or a summary is unreadable or lacks a key. The message
            names the files.
    """
    played = _read(
        rounds,
        (
            "parents.base",
            "parents.sft",
            "parents.policy",
            "policy",
            "settings",
            "code",
            "train_dtype",
        ),
    )
    evaluated = _read(evaluations, ("policy", "base"))
    trained = {_job(found): (path, found) for path, found in played}
    bases = [(path, found["parents"]["base"]) for path, found in played]
    _check_equal([*bases, *((path, found["base"]) for path, found in evaluated)], "base model")
    untrained = [(path, found["policy"]) for path, found in evaluated if _job(found) not in trained]
    supervised = [(path, found["parents"]["sft"]) for path, found in played]
    _check_equal([*supervised, *untrained], "supervised policy")
    formats = [(path, found["train_dtype"]) for path, found in played]
    _check_equal(formats, "number format of the training passes")
    for (arm, seed, number), (path, found) in trained.items():
        if settings.get(arm, found["settings"]) != found["settings"]:
            raise UserError(
                f"{path}: {arm} was trained with other settings than the study has now; run the "
                "study again, or give it another name"
            )
        before = trained.get((arm, seed, number - 1))
        start = found["parents"]["policy"]
        if before and start not in (before[1]["policy"], found["parents"]["sft"]):
            raise UserError(f"{path}: it started from another policy than {before[0]} wrote")
    for arm in dict.fromkeys(arm for arm, _, _ in trained):
        own = [(path, found["code"]) for path, found in played if found["method"] == arm]
        _check_equal(own, f"code of {arm}")
    for path, found in evaluated:
        by, written = trained.get(_job(found), (path, found))
        if found["policy"] != written["policy"]:
            raise UserError(f"{path}: it evaluated another policy than {by} wrote")


def _job(found: Mapping) -> tuple[str, int, int]:
    return found["method"], found["seed"], found["round"]


def _read(paths: Iterable[Path], keys: Iterable[str]) -> list[tuple[Path, dict]]:
    """Read (path, summary) of each file; UserError if a summary is unreadable or lacks a key."""
    found = []
    for path in paths:
        try:
            summary = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: not a summary ({error}); run its job again") from None
        missing = [key for key in (*keys, "method", "seed", "round") if not _has(summary, key)]
        if missing:
            raise UserError(
                f"{path}: it does not record {', '.join(missing)}, so an older version wrote it; "
                "run its job again"
            )
        found.append((path, summary))
    return found


def _has(summary: object, key: str) -> bool:
    """Whether a summary has a key. The key "a.b" stands for the key "b" of the mapping "a"."""
    for part in key.split("."):
        if not isinstance(summary, Mapping) or part not in summary:
            return False
        summary = summary[part]
    return True


def _check_equal(values: Iterable[tuple[Path, str]], what: str) -> None:
    """Raise a `UserError` that names two files unless all values are equal."""
    first: tuple[Path, str] | None = None
    for path, value in values:
        first = first or (path, value)
        if value != first[1]:
            raise UserError(
                f"{path}: the {what} is {value}, but {first[1]} in {first[0]}; a report compares "
                "arms that have it in common"
            )
