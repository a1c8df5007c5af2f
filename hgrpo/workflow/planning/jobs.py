"""What past jobs took, from the records in the store."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from hgrpo.provenance import processor
from hgrpo.store.entry import made_entries, read_made
from hgrpo.store.plan import SHARED, STORE

# (stage, digest of settings) -> (seconds, bytes) of each job.
Past = dict[tuple[str, str], list[tuple[float, float]]]


def past_jobs() -> Past:
    """Every job that ran on a processor like this one."""
    past: Past = defaultdict(list)
    for entry in made_entries():
        made = read_made(entry)
        if made["processor"] == processor() and "taken_from" not in made:
            past[made["stage"], made["settings"]].append((made["seconds"], made["bytes"]))
    return past


def jobs_of(results: Path) -> list[dict]:
    """The record of each job that results/<study> leads to."""
    keys = {
        path.readlink().parts[-1 - depth]
        for path in results.rglob("*")
        if path.is_symlink() and (depth := _depth(path)) is not None
    }
    store = results.parent / STORE.name
    return [read_made(store / key) for key in sorted(keys)]


def spent_jobs(results: Path) -> Iterator[tuple[str, str, float]]:
    """(stage, arm, seconds) of each job of results/<study> that ran."""
    for made in jobs_of(results):
        if "taken_from" not in made:
            yield made["stage"], made["job"]["method"] or SHARED, made["seconds"]


def _depth(link: Path) -> int | None:
    """How many folders a link leads below its key; None if it leads elsewhere."""
    parts = link.readlink().parts
    return len(parts) - 2 - parts.index(STORE.name) if STORE.name in parts else None
