"""Says which imported results a run would overwrite, why, and what to do instead."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.imports import Import, origin, read_imports
from hgrpo.workflow.exchange.manifest import (
    OF_FINE_TUNING,
    START,
    Made,
    differences,
    made_now,
    run_folder,
    takes_adapter,
)
from hgrpo.workflow.exchange.other_code import changed_modules, few, said_revision

_REASONS = 3


@dataclass(frozen=True)
class _Lost:
    """Imported results that a job would overwrite.

    Attributes:
        stage, folder: the job's stage, and its folder below results/<study>.
        from_: the import that they came with.
        changed: what differs between now and the import.
        gone: folders of missing results that these need; {} if something differs.
    """

    stage: str
    folder: str
    from_: Import
    changed: list[str]
    gone: dict[str, Import]


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
    jobs = sorted(jobs, key=_in_order)
    missing = _missing(imports, results, [folder for _, folder in jobs])
    now = functools.cache(functools.partial(made_now, study))
    lost = []
    for stage, folder in jobs:
        from_ = origin(folder, results, imports)
        if from_ is not None:
            changed = _changes(now, stage, _arm_and_seed(stage, folder)[0], from_)
            gone = {} if changed else _needed(stage, folder, missing)
            lost.append(_Lost(stage, folder, from_, changed, gone))
    if not lost:
        return ""
    folders = dict.fromkeys(str(results / run_folder(f"{each.folder}/")) for each in lost)
    return "\n".join(
        [
            "this run would overwrite imported results, so it does not start:",
            *_lines(lost),
            *_restore_lines(lost, results),
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


def _arm_and_seed(stage: str, folder: str) -> tuple[str, str]:
    """A job's arm and seed; two empty words for a job that serves all arms."""
    arm, seed = folder.split("/")[1:3] if belongs_to_an_arm(stage) else ("", "")
    return arm, seed.removeprefix("seed_")


def _missing(imports: Sequence[Import], results: Path, folders: Iterable[str]) -> dict[str, Import]:
    """Job folder -> the import that placed files there, of which some are gone."""
    return {
        folder: each
        for folder in folders
        for each in imports
        if any(not (results / name).is_file() for name in each.by_job.get(folder, {}))
    }


def _needed(stage: str, folder: str, missing: Mapping[str, Import]) -> dict[str, Import]:
    """The part of `missing` that a job needs: of the start, and of its own arm and seed."""
    run = folder.split("/")[1:3] if belongs_to_an_arm(stage) else None
    return {
        each: from_
        for each, from_ in missing.items()
        if each in START or (run and each.split("/")[1:3] == run)
    }


def _restore_lines(lost: Iterable[_Lost], results: Path) -> list[str]:
    archives: dict[str, dict[str, None]] = {}
    for each in lost:
        for folder, from_ in each.gone.items():
            archives.setdefault(from_.archive, {})[f"{results / folder}/"] = None
    return [
        f"Import {archive} again to restore {', '.join(folders)} and keep everything: "
        f"python -m hgrpo.cli.import_results {archive}"
        for archive, folders in archives.items()
    ]


def _lines(lost: Iterable[_Lost]) -> list[str]:
    """A line for each arm and archive, or for what comes before the arms, with the reasons."""
    seeds: dict[tuple[str, int], dict[str, None]] = {}
    reasons: dict[tuple[str, int], dict[str, None]] = {}
    known = {}
    for each in lost:
        arm, seed = _arm_and_seed(each.stage, each.folder)
        group = (arm or each.stage, id(each.from_))
        known[group] = each.from_
        seeds.setdefault(group, {}).update({seed: None} if seed else {})
        why = [*each.changed, *(f"files of {folder}/ are missing" for folder in each.gone)]
        reasons.setdefault(group, {}).update(dict.fromkeys(why))
    return [
        f"  {part}{_seeds(seeds[part, key])}, imported from {from_.archive} (made at "
        f"{said_revision(from_.revision, from_.version)}): {_few(list(reasons[part, key]))}"
        for (part, key), from_ in known.items()
    ]


def _changes(now: Callable[[str, str], Made], stage: str, arm: str, from_: Import) -> list[str]:
    """What differs for a job between now and the import; of an arm, also what it starts from."""
    changed = _changes_of(now, stage, arm, from_)
    if changed or not arm:
        return changed
    before = [each for each in START if each in from_.made]
    if any(map(takes_adapter, (from_.made, {"sft": {"": now("sft", "")}}))):
        before = [each for each in before if each not in OF_FINE_TUNING]
    return [f"{each}: {line}" for each in before for line in _changes_of(now, each, "", from_)]


def _changes_of(now: Callable[[str, str], Made], stage: str, arm: str, from_: Import) -> list[str]:
    there, here = from_.made[stage][arm], now(stage, arm)
    changed = differences(there.settings, here.settings, words=("in the archive", "now"))
    if there.code != here.code:
        modules = few(changed_modules(there, here))
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
