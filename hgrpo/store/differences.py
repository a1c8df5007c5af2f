"""Explain why a job runs again, by comparing its result with the plan or with an older result."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from hgrpo.stages.paths import Job
from hgrpo.store.code import closure, roots
from hgrpo.store.entry import key_of, names_of, sources
from hgrpo.store.plan import STORE, Plan, Planned
from hgrpo.study.overrides import changes

# Maximum number of names printed in a reason.
_MOST = 3


def differences(plan: Plan, planned: Planned, records: Mapping[str, Mapping]) -> str:
    """Describe which settings, modules and inputs of a job have changed since an older result.

    The older result is the one linked in results/<study> or, without a link, the newest result of
    the study in `records`. Without an older result, the text is "never ran".
    """
    keys = [key for name in names_of(planned) if (key := key_of(Path(plan.root, name)))]
    if planned.key in keys:
        return "its files are gone"
    linked = [records[key] for key in keys if key in records]
    made = newest(planned, linked) or newest(planned, records.values(), plan.study.config.name)
    if made is None:
        return "never ran"
    now = plan.preimage(planned.stage, planned.job, planned.inputs)
    settings = partial(plan.settings, planned.stage, planned.job.method or None)
    reasons = _changed(made, now, settings, lambda: closure(roots(planned.stage, settings())))
    return "; ".join(reasons) or "its files are gone"


def newest(planned: Planned, records: Iterable[Mapping], study: str | None = None) -> dict | None:
    """The newest record of a job in `records`; with `study`, only among results of this study."""
    job = vars(planned.job).items()
    same = [m for m in records if m["stage"] == planned.stage and m["job"].items() <= job]
    same = [m for m in same if study in (None, m.get("study"))]
    return max(same, key=lambda made: made["finished"], default=None)


def as_planned(made: Mapping) -> Planned:
    """Convert a record to a job with empty inputs and outputs."""
    return Planned(made["stage"], Job(**made["job"]), made["key"], "", {}, {})


def causes(
    old: Mapping, new: Mapping, records: Mapping[str, Mapping]
) -> Iterator[tuple[Mapping, Mapping, str]]:
    """Yield the differences between two results, and then between their ancestors.

    Yields:
        The older record, the newer record, and the reasons for the difference. A pair of ancestors
        is skipped if only the inputs differ.
    """
    pairs = [(old["key"], new["key"])]
    for keys in pairs:
        if not records.keys() >= {*keys}:  # an ancestor has been removed from the store
            continue
        before, after = map(records.get, keys)
        parts = [partial(_read, part, after[part]) for part in ("settings", "code")]
        reasons = [*_changed(before, after, *parts)]
        if keys == pairs[0] or not all(each.startswith("inputs") for each in reasons):
            yield before, after, "; ".join(reasons)
        then = sources(before)
        further = {(then.get(path, key), key) for path, key in sources(after).items()}
        pairs += sorted(each for each in further - {*pairs} if each[0] != each[1])


def _changed(
    before: Mapping, after: Mapping, settings: Callable[[], dict], code: Callable[[], dict]
) -> Iterator[str]:
    """Yield reasons why two keys differ. `after` has hashes of `settings()` and `code()`."""
    if before["settings"] != after["settings"]:
        yield f"settings: {_few([*_edits(_read('settings', before['settings']), settings())])}"
    if before["code"] != after["code"]:
        then, now = _read("code", before["code"]), code()
        modules = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
        yield f"code: {_few(modules)}"
    if before["user_files"] != after["user_files"]:
        yield "your files"
    paths = sources(before).items() ^ sources(after).items()
    if folders := sorted({path.partition("/")[0] for path, _ in paths}):
        yield f"inputs from {', '.join(folders)}"


def _read(part: str, digest: str) -> dict:
    """Read the settings or module hashes with this digest; empty if the file is missing."""
    file = STORE / part / f"{digest}.json"
    return json.loads(file.read_bytes()) if file.is_file() else {}


def _edits(before: Mapping, after: Mapping) -> Iterator[str]:
    """Describe each changed key: what was added or removed, or else the old and new value."""
    olds = changes(after, before)
    for key, new in changes(before, after).items():
        old, edits = olds[key], []
        if isinstance(old, list) and isinstance(new, list):
            edits = [f"{key}.{each!s:.24} added" for each in new if each not in old]
            edits += [f"{key}.{each!s:.24} removed" for each in old if each not in new]
        elif None in (old, new) and isinstance(new or old, Mapping):
            edits = [f"{key} {'removed' if new is None else 'added'}"]
        yield from edits or [f"{key} {old!s:.24} -> {new!s:.24}"]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
