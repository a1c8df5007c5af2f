"""Print the plan of a run: number of jobs, hours, money and disk space, by stage and by arm.

The time and the disk space of a job are means over past jobs of the same stage and arm. If there
are no such jobs, they are estimated from other arms of the study, from measurements on a reference
machine, or, on GPUs, from the time limits in `resources`, which are upper bounds. The plan marks
these estimates. It shows costs if the folder of the profile contains `prices.yaml`. For LLM judges,
the plan shows the maximum number of calls.

Examples:
    python -m hgrpo.cli.plan study=bakeoff seeds=11,23 rounds=7
    python -m hgrpo.cli.plan study=bakeoff methods=LLMJudge training.lr=1e-4
    python -m hgrpo.cli.plan --profile profiles/slurm study=bakeoff
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping

from hgrpo.cli.entry import add_profile, add_settings, command_parser, named_study
from hgrpo.command import run
from hgrpo.stages.order import STAGES
from hgrpo.store.plan import SHARED, Plan
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import (
    Forecast,
    footnotes,
    forecasts,
    grouped,
    price_lines,
    table,
    wall_line,
)
from hgrpo.workflow.planning.profile import Profile, read_profile
from hgrpo.workflow.preflight import missing_variables


def main() -> None:
    """Print the plan of a run."""
    parser = command_parser(__doc__)
    add_settings(parser, "override a key of the study, such as training.lr=1e-4")
    add_profile(parser, "folder of a profile (default: profiles/laptop)")
    parser.add_argument(
        "--cores", type=int, help="number of local cores for jobs (default: from the profile)"
    )
    args = parser.parse_intermixed_args()
    profile, study = read_profile(args.profile, args.cores), named_study(args.settings)
    plan = Plan(study)
    expected = forecasts(plan, Estimates(plan), profile.cores)
    print("\n".join(report(study, expected, profile, os.environ)))


def report(
    study: Study, expected: list[Forecast], profile: Profile, environment: Mapping[str, str]
) -> list[str]:
    """Lines of the plan: a table by stage, a table by arm, and notes."""
    by_stage = grouped(expected, "stage", STAGES)
    by_arm = grouped(expected, "arm", [SHARED, *study.methods])
    calls = service_call_lines(study, expected, environment)
    lines = [*table("stage", by_stage, profile.prices), ""]
    lines += [*table("arm", by_arm | {"all": expected}, profile.prices), ""]
    lines.append(wall_line(expected, profile))
    if any(one.to_run for one in expected):
        lines += [*footnotes(by_arm), *price_lines(expected, profile, bool(calls))]
    return lines + calls


def service_call_lines(
    study: Study, expected: Iterable[Forecast], environment: Mapping[str, str]
) -> list[str]:
    """One line for each unfinished arm whose credit assigner calls an external service."""
    to_run = Counter(one.job.arm for one in expected if one.job.stage == "rl_round" and one.to_run)
    lines = []
    for name, arm in study.methods.items():
        training = study.training[name]
        groups = to_run[name] * training.steps_per_round * training.most_tasks_per_step
        calls = arm.credit.declared.outside_calls(groups, training.rollouts_per_task)
        if to_run[name] and calls:
            unset = missing_variables(arm, environment)
            lines.append(f"{name}: {calls}" + "".join(f"; {each} is not set" for each in unset))
    return lines


if __name__ == "__main__":
    run(main)
