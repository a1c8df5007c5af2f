"""Print what a run would do: jobs, hours, money and disk, by stage and by arm.

Seconds and bytes are those of past jobs of the same stage and arm. Where this study has none yet
they are taken from its other arms, or from other studies whatever their size, and marked; of stages
that run a model, only from studies of the same model and kind of engine. Money needs prices:
`prices.yaml` in the profile's folder. Of a judge that is not the offline rubric it says how many
calls the rounds to run will want at most.

The plan is kept as results/<study>/plan.json; `--check` holds it against what its jobs took, if it
was made for the same settings.

Examples:
    python -m hgrpo.cli.plan study=bakeoff seeds=11,23 rounds=7
    python -m hgrpo.cli.plan --profile profiles/slurm study=bakeoff
    python -m hgrpo.cli.plan --check study=bakeoff
"""

import argparse
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.cli.entry import run
from hgrpo.errors import UserError
from hgrpo.study.study import NAME, Study, load_study
from hgrpo.workflow.planning.accuracy import PLAN, check_lines, check_plan, save_plan
from hgrpo.workflow.planning.forecast import (
    Forecast,
    arm_of,
    forecasts,
    least_minutes,
    rows,
    stage_of,
    total,
    unknown_stages,
)
from hgrpo.workflow.planning.jobs import SHARED, STAGES, Job, read_jobs, snakemake_summary
from hgrpo.workflow.planning.past import Past, Player
from hgrpo.workflow.planning.profile import Profile, read_profile
from hgrpo.workflow.planning.tables import footnotes, lost_lines, price_lines, table, wall_line
from hgrpo.workflow.preflight import missing_variables

RESULTS = Path("results")
_NOTHING_KNOWN = (
    "no job has ended here yet that could tell what one takes, of this study or one of its model:",
    "`make bakeoff STUDY=smoke` runs every stage, with the model `tiny`, in a few minutes",
)


def main() -> None:
    """Ask snakemake for its plan and print it as tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="as snakemake's --config")
    parser.add_argument(
        "--profile",
        type=Path,
        default=Path("profiles/laptop"),
        help="folder of a profile (default profiles/laptop)",
    )
    parser.add_argument(
        "--cores", type=int, help="cores of this machine that run jobs (default: the profile's)"
    )
    parser.add_argument(
        "--check", action="store_true", help="only say how true the study's last plan was"
    )
    args = parser.parse_args()
    config = dict(setting.split("=", 1) for setting in args.settings if "=" in setting)
    if len(config) < len(args.settings):
        raise UserError(f"KEY=VALUE was expected: {' '.join(args.settings)}")
    name = config.pop("study", "bakeoff")
    if args.cores is not None and args.cores < 1:
        raise UserError(f"--cores: at least 1 was expected, not {args.cores}")
    if args.check:
        if not re.match(NAME, name):
            raise UserError(f"study: not a study's name: {name!r}")
        if not (RESULTS / name / PLAN).is_file():
            raise UserError(f"there is no plan of the study {name} yet: without --check it is made")
        check = check_plan(RESULTS / name, settings_of(_study(name, config)))
        _print(check_lines(check) if check else ())
        return
    profile = read_profile(args.profile, args.cores)
    study = _study(name, config)
    jobs = read_jobs(snakemake_summary(args.settings, args.profile))
    past = Past(RESULTS, name, Player(study.model.name, study.config.engine.kind))
    expected = forecasts(jobs, past, study.config.resources, profile.cores)
    _print(report(study, expected, profile, os.environ))
    to_run = any(job.to_run for job in jobs)
    check = check_plan(RESULTS / name, settings_of(study))
    if check:
        _print(check_lines(check, by_stage=not to_run))
    if to_run:
        asked = {"settings": args.settings, "profile": str(args.profile)}
        save_plan(RESULTS / name, expected, asked | {"study": settings_of(study)})


def _study(name: str, overrides: Mapping[str, str]) -> Study:
    return load_study(Path("configs/studies") / f"{name}.yaml", overrides)


def settings_of(study: Study) -> dict[str, object]:
    """What a study's jobs are named by and mostly cost by, as JSON types."""
    config = study.config
    return {
        "env": config.env,
        "model": config.model,
        "engine": config.engine.kind,
        "methods": sorted(config.methods),
        "seeds": sorted(config.seeds),
        "rounds": config.rounds,
    }


def report(
    study: Study, expected: list[Forecast], profile: Profile, environment: Mapping[str, str]
) -> list[str]:
    """Both tables and what is to be said about them, as lines.

    Args:
        study: in hand.
        expected: what is expected of each of its jobs.
        profile: that a run would use.
        environment: of the process, which may hold a judge's key.
    """
    prices = profile.prices
    currency = prices.currency if prices else None
    by_stage = rows(expected, stage_of, STAGES, prices)
    by_arm = rows(expected, arm_of, [SHARED, *study.methods], prices)
    everything = total("all", expected, prices)
    judges = judge_lines(study, [one.job for one in expected], environment)
    unknown = unknown_stages(expected)
    minutes = least_minutes(expected, study, profile)
    lines = [*table("stage", by_stage, currency, each=True), ""]
    lines += [*table("arm", [*by_arm, everything], currency), ""]
    lines.append(wall_line(everything, minutes, profile, unknown))
    if everything.to_run:
        if everything.seconds_each is None:
            lines += _NOTHING_KNOWN
        lines += footnotes(by_arm)
        lines += price_lines(everything, profile, bool(judges))
    return lines + lost_lines(one.job for one in expected) + judges


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def judge_lines(study: Study, jobs: Iterable[Job], environment: Mapping[str, str]) -> list[str]:
    """For each arm that asks an outside service: what the rounds to run may ask of it.

    Args:
        study: in hand.
        jobs: from `read_jobs`.
        environment: of the process, which may hold the service's key.
    """
    to_run = Counter(job.arm for job in jobs if job.stage == "rl_round" and job.to_run)
    lines = []
    for name, arm in study.methods.items():
        training = study.training[name]
        groups = to_run[name] * training.steps_per_round * training.tasks_per_step
        calls = arm.credit.declared.outside_calls(groups, training.rollouts_per_task)
        if groups and calls:
            unset = [f"{variable} is not set" for variable in missing_variables(arm, environment)]
            lines.append("; ".join([f"{name}: {calls}", *unset]))
    return lines


if __name__ == "__main__":
    run(main)
