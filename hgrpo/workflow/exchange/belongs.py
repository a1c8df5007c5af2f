"""Says whether an archive's results belong into a study, and if not, why."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.files import EVERY_SEED
from hgrpo.stages.timing import TIMING
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.manifest import (
    OF_FINE_TUNING,
    SHARED,
    Made,
    Manifest,
    content_hash,
    differences,
    exchanged_jobs,
    extras,
    holds_start,
    is_result,
    made_with,
    run_folder,
    says_start,
    shared_hashes,
    takes_adapter,
)
from hgrpo.workflow.exchange.other_code import other_code_lines
from hgrpo.workflow.reuse import sha256
from hgrpo.workflow.watch.jobs import StudyJob

_Makings = Mapping[str, Mapping[str, Made]]


def check_belongs(
    archive: Path, manifest: Manifest, study: Study, jobs: Sequence[StudyJob], results: Path
) -> None:
    """Refuse results that were made with other settings, code, tasks, base or SFT policy.

    Args:
        study: the local study, with the methods, seeds and rounds of the archive.
        jobs: its jobs whose results the archive should hold.
        results: results/<study>.

    Raises:
        UserError: one line per difference. Each names the arm, the stage and the key.
    """
    every = exchanged_jobs(study, results, start=says_start(manifest.made))
    theirs, ours = _compared(manifest, made_with(study, every))
    lines = [
        *_other_makings(theirs, ours),
        *other_code_lines(manifest, theirs, ours),
        *_other_start(manifest, results),
    ]
    # Which files a job writes depends on its settings, so these come first.
    lines = lines or [*_other_files(manifest, jobs, results)] or _other_results(manifest, results)
    if lines:
        raise UserError("\n".join(f"{archive}: {line}" for line in dict.fromkeys(lines)))


def _compared(manifest: Manifest, ours: _Makings) -> tuple[_Makings, _Makings]:
    """What the archive's results, and ours, are made with; without what may differ.

    If one of the two took its SFT policy from a folder, and each uses a policy of its own, then how
    it was made says nothing: the hash of its weights decides.
    """
    theirs = manifest.made
    if not holds_start(manifest) and any(takes_adapter(made) for made in (theirs, ours)):
        return tuple(
            {stage: arms for stage, arms in made.items() if stage not in OF_FINE_TUNING}
            for made in (theirs, ours)
        )
    return theirs, ours


def _other_makings(theirs: _Makings, ours: _Makings) -> list[str]:
    found = []
    for stage in dict.fromkeys((*theirs, *ours)):
        there, here = theirs.get(stage, {}), ours.get(stage, {})
        for arm in dict.fromkeys((*there, *here)):
            who = f"{arm or 'all arms'}, {stage}"
            if arm not in there or arm not in here:
                found.append(f"{who}: only {'here' if arm in here else 'there'}")
                continue
            settings = differences(there[arm].settings, here[arm].settings)
            found += [f"{who}: {line}" for line in settings]
    return found


def _other_start(manifest: Manifest, results: Path) -> list[str]:
    found, here = [], shared_hashes(results)
    for name, (path, _) in SHARED.items():
        if name not in here and path not in manifest.files:
            found.append(
                f"{name}: {results / path} is not there yet; make it first (snakemake sft), or ask "
                "for an archive with --start"
            )
        elif here.get(name, manifest.shared.get(name)) != manifest.shared.get(name):
            found.append(f"{name}: {path} differs from {results / path}")
    return found


def _other_files(manifest: Manifest, jobs: Sequence[StudyJob], results: Path) -> list[str]:
    """Files that the jobs do not write, and files of theirs that the archive lacks."""

    def below(paths: Sequence[Path]) -> set[str]:
        return {path.relative_to(results).as_posix() for path in paths}

    own = below([Path(path) for job in jobs for path in job.outputs])
    strange = manifest.files.keys() - own - below([p for job in jobs for p in extras(job, results)])
    return [
        *(f"{name}: no file of the exported jobs" for name in sorted(strange)[:1]),
        *(f"{name}: missing" for name in sorted(own - manifest.files.keys())[:1]),
    ]


def _other_results(manifest: Manifest, results: Path) -> list[str]:
    """Where other results of the archive's jobs stand here: one line, with the folders to move."""
    other = [
        name for name, digest in manifest.files.items() if _differs(name, digest, manifest, results)
    ]
    if not other:
        return []
    folders = dict.fromkeys(str(results / run_folder(name)) for name in other)
    return [
        f"here are other results of the same job, such as {results / other[0]}; to import these, "
        f"first move to another place: {' '.join(folders)}"
    ]


def _differs(name: str, digest: str, manifest: Manifest, results: Path) -> bool:
    """Whether a file is a result that is here too, with other content.

    Seconds and machines are no results. The evaluation that serves every seed comes with each
    colleague's archive; on another processor its bytes may differ. In both cases the local file
    stays as it is.
    """
    here = results / name
    if not is_result(name) or here.name == TIMING or not here.is_file() or sha256(here) == digest:
        return False
    if name.startswith("eval/") and f"/seed_{EVERY_SEED}/round_0/" in name:
        return False
    return name not in manifest.contents or content_hash(here) != manifest.contents[name]
