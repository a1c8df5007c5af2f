"""Says of results that other code made: where the code differs, and what to check out."""

from collections.abc import Iterable, Mapping

from hgrpo.provenance import revision
from hgrpo.workflow.exchange.manifest import Made, Manifest

# `git describe --dirty` puts this behind a revision whose files were edited.
_EDITED = "-dirty"
_NAMED = 4


def other_code_lines(
    manifest: Manifest,
    theirs: Mapping[str, Mapping[str, Made]],
    ours: Mapping[str, Mapping[str, Made]],
) -> list[str]:
    """One line if code of the archive's jobs differs from ours, with both revisions; else none.

    Args:
        manifest: the archive's.
        theirs: stage -> arm -> what the archive's jobs were made with.
        ours: stage -> arm -> what its jobs would be made with here.
    """
    pairs = {
        (stage, arm): (one, ours[stage][arm])
        for stage, arms in theirs.items()
        for arm, one in arms.items()
        if arm in ours.get(stage, {}) and one.code != ours[stage][arm].code
    }
    if not pairs:
        return []
    there, mine = manifest.revision, revision()
    version = manifest.packages.get("hgrpo")
    modules = {name for pair in pairs.values() for name in changed_modules(*pair)}
    by_stage: dict[str, list[str]] = {}
    for stage, arm in pairs:
        by_stage.setdefault(stage, []).append(arm)
    jobs = [
        f"{stage} of {', '.join(filter(None, arms)) or 'all arms'}"
        for stage, arms in by_stage.items()
    ]
    return [
        f"made at {said_revision(there, version)} by code that differs{_in(modules)}; yours is "
        f"{said_revision(mine)}; this concerns {'; '.join(jobs)}; {_advice(there, mine)}"
    ]


def changed_modules(there: Made, here: Made) -> list[str]:
    """Modules and data files whose part in the code differs; [] if the archive does not say."""
    if not there.modules:
        return []
    names = sorted({*there.modules, *here.modules})
    return [name for name in names if there.modules.get(name) != here.modules.get(name)]


def said_revision(found: str | None, version: str | None = None) -> str:
    """A revision in words; `version` is that of the package, for when git says nothing."""
    if found is None:
        return f"an unknown revision of hgrpo {version}" if version else "an unknown revision"
    edited = found.endswith(_EDITED)
    return f"revision {found.removesuffix(_EDITED)}" + " with uncommitted edits" * edited


def few(names: Iterable[str], most: int = _NAMED) -> str:
    """Names with commas between them, the first ones only if there are many."""
    every = sorted(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _in(modules: Iterable[str]) -> str:
    return f" in {said}" if (said := few(modules)) else ""


def _advice(theirs: str | None, mine: str | None) -> str:
    if theirs is None:
        return "check out the same revision"
    if theirs.endswith(_EDITED):
        return "commit the edits there, export again, and check out that commit here"
    if mine is not None and mine.endswith(_EDITED):
        return f"check out {theirs}, without edits"
    return f"check out {theirs}"
