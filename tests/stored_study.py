"""A small study in the store: jobs that tests finish by writing small files."""

import json
import time
from collections.abc import Iterable
from pathlib import Path

from places import PROJECT

from hgrpo.store.entry import link, read_made, record, write_job
from hgrpo.store.plan import Plan, Planned, flat
from hgrpo.study.study import load_study

SMALL = {"methods": "SFTOnly,flatGRPO,Progressive", "seeds": "11", "truth": "null"}


def small_plan(name: str = "smoke", configs: Path = PROJECT / "configs", **changes) -> Plan:
    """The plan of a study with three arms, one seed and two rounds."""
    return Plan(load_study(configs / f"studies/{name}.yaml", SMALL | changes))


def name_of(planned: Planned) -> str:
    """A job's stage, such as `sft`; of an arm's job all, such as `rl_round flatGRPO 11 2`."""
    job = planned.job
    run = f" {job.method} {job.seed} {job.round}" if job.method else ""
    return f"{planned.stage}{run}"


def keys(plan: Plan) -> dict[str, str]:
    """Name of a job -> its key."""
    return {name_of(planned): planned.key for planned in plan.jobs()}


def changed(before: Plan, after: Plan) -> set[str]:
    """Names of the jobs of `after` that `before` has not."""
    have = set(keys(before).values())
    return {name for name, key in keys(after).items() if key not in have}


def finish(plan: Plan, jobs: Iterable[Planned] | None = None, text: str = "") -> None:
    """Write files of jobs that have not finished, and their records, as their commands do.

    The files of a job are the same whatever its key is; `text` makes others of them.
    """
    for planned in plan.jobs() if jobs is None else jobs:
        if not planned.made:
            file = write_job(plan, planned, [])
            write_outputs(planned, text)
            record(json.loads(file.read_bytes()), planned.entry, time.time())


def write_outputs(planned: Planned, text: str = "") -> None:
    """Write a job's files, which differ from those of all other jobs."""
    for path in map(Path, flat(planned.outputs)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name_of(planned)} {path.name} {text}\n", encoding="utf-8")


def finished_study(**changes) -> Plan:
    """The plan of a study that has been run in this folder, with its links."""
    plan = small_plan(**changes)
    finish(plan)
    link(Path(plan.root), (read_made(planned.entry) for planned in plan.jobs()))
    return plan
