"""Print what a run would do: jobs, hours, money and disk, by stage and by arm.

Estimates of seconds and bytes are means over past jobs of the same stage and arm. Without them,
they come from the study's other arms; before any job, from reference rates scaled to this machine;
on GPUs, from the time limits in `resources`, as a ceiling. Such estimates are marked. Money needs
prices: `prices.yaml` in the profile's folder. For a judge behind an endpoint, the plan also gives
the most calls that the remaining rounds can make.

Examples:
    python -m hgrpo.cli.plan study=bakeoff seeds=11,23 rounds=7
    python -m hgrpo.cli.plan study=bakeoff methods=LLMJudge training.lr=1e-4
    python -m hgrpo.cli.plan --profile profiles/slurm study=bakeoff
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.cli.entry import add_profile, add_settings, command_parser
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES
from hgrpo.store.plan import SHARED, Plan
from hgrpo.study.overrides import OF_THE_RUN, read_assignments
from hgrpo.study.study import Study, load_study
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import (
    Forecast,
    footnotes,
    forecasts,
    foreign_lines,
    grouped,
    price_lines,
    table,
    wall_line,
)
from hgrpo.workflow.planning.profile import Profile, read_profile
from hgrpo.workflow.preflight import missing_variables


def main() -> None:
    """Print a run's plan."""
    parser = command_parser(__doc__)
    add_settings(parser, "any key of a study, with dots")
    add_profile(parser, "folder of a profile (default profiles/laptop)")
    parser.add_argument(
        "--cores", type=int, help="cores of this machine that run jobs (default: the profile's)"
    )
    args = parser.parse_intermixed_args()
    config = read_assignments(args.settings)
    name = config.get("study", "bakeoff")
    if args.cores is not None and args.cores < 1:
        raise UserError(f"--cores: at least 1 was expected, not {args.cores}")
    profile = read_profile(args.profile, args.cores)
    overrides = {key: value for key, value in config.items() if key not in OF_THE_RUN}
    study = load_study(Path("configs/studies") / f"{name}.yaml", overrides)
    plan = Plan(study)
    expected = forecasts(plan, Estimates(plan), profile.cores)
    print("\n".join(report(study, expected, profile, os.environ)))


def report(
    study: Study, expected: list[Forecast], profile: Profile, environment: Mapping[str, str]
) -> list[str]:
    """Lines of the plan: a table by stage, a table by arm, and notes on both.

    Args:
        study: the study to plan.
        expected: a forecast for each of its jobs.
        profile: the profile that a run would use.
        environment: environment variables, which may hold a judge's API key.
    """
    by_stage = grouped(expected, "stage", STAGES)
    by_arm = grouped(expected, "arm", [SHARED, *study.methods])
    calls = service_call_lines(study, expected, environment, profile)
    lines = [*table("stage", by_stage, profile.prices, each=True), ""]
    lines += [*table("arm", by_arm | {"all": expected}, profile.prices), ""]
    lines.append(wall_line(expected, study, profile))
    to_run = [one.job for one in expected if one.to_run]
    if to_run:
        lines += footnotes(by_arm)
        rounds = [job.arm for job in to_run if job.stage == "rl_round"]
        needs, cap = study.config.resources.of("rl_round"), study.env.turn_cap
        if study.config.engine.kind == "vllm" and rounds and not needs.gpu:
            lines.append("engine vllm, but `resources.rl_round` asks for no GPU (`gpu: 1` does)")
        turns = {arm: each * cap for arm, each in study.round_trajectories.items()}
        played = [(study.methods[arm].credit.kind, turns[arm]) for arm in rounds if needs.gpu]
        lines += foreign_lines(played, needs.runtime)
        lines += price_lines(expected, profile, bool(calls))
    return lines + calls


def service_call_lines(
    study: Study, expected: Iterable[Forecast], environment: Mapping[str, str], profile: Profile
) -> list[str]:
    """For each arm with rounds to play, one line on the outside service that its credit calls.

    An arm whose credit calls no service has no line. A last line says if caps hold for each job
    alone, because the jobs share no account.

    Args:
        study: the study to plan.
        expected: a forecast for each of its jobs.
        environment: environment variables, which may hold the service's API key.
        profile: the profile that a run would use.
    """
    to_run = Counter(one.job.arm for one in expected if one.job.stage == "rl_round" and one.to_run)
    lines = []
    for name, arm in study.methods.items():
        training = study.training[name]
        groups = to_run[name] * training.steps_per_round * training.most_tasks_per_step
        asked = arm.credit.declared.outside_calls(groups, training.rollouts_per_task)
        if to_run[name] and asked:
            unset = missing_variables(arm, environment)
            lines.append(f"{name}: {asked}" + "".join(f"; {each} is not set" for each in unset))
    if lines and profile.in_bucket:
        lines.append("these caps hold for one round of one seed each: pods share no account")
    return lines


if __name__ == "__main__":
    run(main)
