"""Says which imported results a run would overwrite, why, and what to do instead."""

from collections.abc import Iterable
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.imports import Import, origin, read_imports
from hgrpo.workflow.exchange.manifest import differences, made_now, run_folder
from hgrpo.workflow.exchange.other_code import changed_modules, few, said_revision

_REASONS = 3


def check_overwrites(study: Study, results: Path, jobs: Iterable[tuple[str, str]]) -> None:
    """Refuse to start if a job would overwrite results that a colleague gave.

    Args:
        study: the study to run.
        results: results/<study>.
        jobs: (stage, folder below `results`) of each job to run.

    Raises:
        UserError: the message of `overwrites`.
    """
    said = overwrites(study, results, jobs)
    if said:
        raise UserError(said)


def overwrites(study: Study, results: Path, jobs: Iterable[tuple[str, str]]) -> str:
    """Lines about imported results that jobs would overwrite; "" if there are none.

    They name the arms, seeds and archives, what has changed since the import, and what to do.
    Arguments are those of `check_overwrites`.
    """
    imports = read_imports(results)
    if not imports:
        return ""
    lost = [
        (stage, folder, from_)
        for stage, folder in sorted(jobs, key=_in_order)
        if (from_ := origin(folder, results, imports)) is not None
    ]
    if not lost:
        return ""
    folders = dict.fromkeys(str(results / run_folder(f"{folder}/")) for _, folder, _ in lost)
    return "\n".join(
        [
            "this run would overwrite imported results, so it does not start:",
            *_lines(study, lost),
            "To keep them, undo the change, leave these arms out, or copy "
            f"configs/studies/{study.config.name}.yaml under another name and run that study. To "
            "run these jobs here, first move to another place, or remove:",
            *(f"  {folder}" for folder in folders),
        ]
    )


def _in_order(job: tuple[str, str]) -> tuple:
    """The key that puts the start before the arms, and the jobs of an arm and seed together."""
    stage, folder = job
    of_the_arm = folder.split("/")[1:] if belongs_to_an_arm(stage) else []
    return of_the_arm[:2], STAGES.index(stage), folder


def _lines(study: Study, lost: Iterable[tuple[str, str, Import]]) -> list[str]:
    """A line for each arm and archive, or for what comes before the arms, with the reasons."""
    seeds: dict[tuple[str, int], dict[str, None]] = {}
    reasons: dict[tuple[str, int], dict[str, None]] = {}
    known = {}
    for stage, folder, from_ in lost:
        arm, seed = folder.split("/")[1:3] if belongs_to_an_arm(stage) else ("", "")
        group = (arm or stage, id(from_))
        known[group] = from_
        seeds.setdefault(group, {}).update({seed.removeprefix("seed_"): None} if seed else {})
        reasons.setdefault(group, {}).update(dict.fromkeys(_changes(study, stage, arm, from_)))
    return [
        f"  {part}{_seeds(seeds[part, key])}, imported from {from_.archive} (made at "
        f"{said_revision(from_.revision, from_.version)}): {_few(list(reasons[part, key]))}"
        for (part, key), from_ in known.items()
    ]


def _changes(study: Study, stage: str, arm: str, from_: Import) -> list[str]:
    """What differs for a job between now and the import."""
    before, now = from_.made[stage][arm], made_now(study, stage, arm)
    changed = differences(before.settings, now.settings, words=("in the archive", "now"))
    if before.code != now.code:
        modules = few(changed_modules(before, now))
        changed.append("the code has changed" + f" in {modules}" * bool(modules))
    return changed


def _seeds(seeds: Iterable[str]) -> str:
    every = list(seeds)
    return f", seed{'s' if len(every) > 1 else ''} {', '.join(every)}" if every else ""


def _few(reasons: list[str]) -> str:
    if not reasons:
        return (
            "a file is missing, what these jobs read has changed, or the command asks for them "
            "(--forcerun)"
        )
    more = len(reasons) - _REASONS
    return "; ".join(reasons[:_REASONS]) + (f"; and {more} more" if more > 0 else "")
