"""Why a job runs: what differs between its plan and the result that is in its place."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from hgrpo.store.code import closure, roots
from hgrpo.store.entry import key_of, made_entries, names_of, read_made
from hgrpo.store.plan import MADE, STORE, Plan, Planned
from hgrpo.study.overrides import changes

_MOST = 3


def differences(plan: Plan, planned: Planned) -> str:
    """What changed since the result in results/<study> was made, or else the newest such result.

    Returns:
        Settings with their new values, modules, inputs; "never ran" if the job has no result.
    """
    made = _in_place(plan, planned) or _newest(planned)
    if made is None:
        return "never ran"
    now = plan.preimage(planned.stage, planned.job, planned.inputs)
    return "; ".join(_changed(plan, planned, made, now)) or "the result is gone"


def _in_place(plan: Plan, planned: Planned) -> dict | None:
    for name in names_of(planned):
        key = key_of(Path(plan.root, name))
        if key and (STORE / key / MADE).is_file():
            return read_made(STORE / key)
    return None


def _newest(planned: Planned) -> dict | None:
    """The newest result of the same stage, method, seed and round, as after an import."""
    job = vars(planned.job)
    mades = [read_made(entry) for entry in made_entries()]
    same = [m for m in mades if m["stage"] == planned.stage and m["job"].items() <= job.items()]
    return max(same, key=lambda made: made["finished"], default=None)


def _changed(plan: Plan, planned: Planned, made: Mapping, now: Mapping) -> Iterator[str]:
    sources: set[str] = set()
    if made["settings"] != now["settings"]:
        before = json.loads((STORE / "settings" / f"{made['settings']}.json").read_bytes())
        after = plan.settings(planned.stage, planned.job.method or None)
        keys = [f"{key}={value}" for key, value in changes(before, after).items()]
        yield f"settings: {_few(keys)}"
    if made["code"] != now["code"]:
        yield f"code: {_few(_modules(plan, planned, made['code']))}"
    if made["user_files"] != now["user_files"]:
        yield "your files"
    for name, paths in now["inputs"].items():
        for path in {*paths} ^ {*made["inputs"].get(name, [])}:
            sources.add(path.split("/")[1])
    if sources:
        yield f"inputs from {', '.join(sorted(sources))}"


def _modules(plan: Plan, planned: Planned, before: str) -> list[str]:
    """Modules whose hash is another one than then."""
    file = STORE / "code" / f"{before}.json"
    then = json.loads(file.read_bytes()) if file.is_file() else {}
    settings = plan.settings(planned.stage, planned.job.method or None)
    after = closure(roots(planned.stage, settings))
    return sorted(name for name in {*then, *after} if then.get(name) != after.get(name))


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
