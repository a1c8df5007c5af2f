"""Print the cost of a study's finished jobs by arm: time, GPU-hours, tokens, judge fees and money.

Times are the recorded durations of the jobs. The price of cores and GPUs is computed with the
prices of a profile. The fees for LLM judges are in a separate column.

Examples:
    python -m hgrpo.cli.cost results/bakeoff
    python -m hgrpo.cli.cost results/alfworld_5x40 --profile profiles/one-gpu --csv > cost.csv
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from hgrpo.cli.entry import add_profile, command_parser
from hgrpo.command import run
from hgrpo.report.logs import play_by_round, read_logs
from hgrpo.store.entry import linked_jobs
from hgrpo.store.plan import SHARED
from hgrpo.study.recorded import recorded_study
from hgrpo.study.resources import Resources
from hgrpo.workflow.planning.forecast import needs
from hgrpo.workflow.planning.profile import Prices, Profile, read_profile

_JOBS = ["arm", "jobs", "seconds", "core_hours", "gpu_hours", "money"]
# Column -> heading and format.
_COLUMNS = {
    "arm": ("arm", ""),
    "jobs": ("jobs", ""),
    "seconds": ("seconds", ",.0f"),
    "core_hours": ("core-hours", ".2f"),
    "gpu_hours": ("GPU-hours", ".2f"),
    "money": ("", ".2f"),
    "tokens": ("tokens", ",.0f"),
    "judge_dollars": ("judge $", ".2f"),
}


def main() -> None:
    """Print the costs as a table or as CSV."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="results/<study>")
    about = "folder of a profile with prices.yaml (default: profiles/laptop, without prices)"
    add_profile(parser, about)
    parser.add_argument("--csv", action="store_true", help="print CSV with unrounded numbers")
    args = parser.parse_args()
    study, profile = recorded_study(args.results), read_profile(args.profile)
    order = sorted(
        study.methods, key=lambda arm: (study.methods[arm].train, arm != study.config.reference)
    )
    costs = spent(args.results, order, study.config.resources, profile)
    if args.csv:
        print(costs.to_csv(lineterminator="\n"), end="")
        return
    print("\n".join(lines(costs, profile.prices)))


def spent(
    folder: Path, arms: Iterable[str], resources: Resources, profile: Profile
) -> pd.DataFrame:
    """Return a table of costs with one row per arm.

    The first row is for shared jobs, and the last row, "all", contains totals. A job whose results
    were copied from an identical job costs nothing. If a job was retried, only its last attempt is
    included.

    Args:
        folder: results/<study>.
        arms: names of arms, in the order of the rows. Rows of other arms in the folder follow.
        resources: resources of each stage.
        profile: the profile of the study's run.

    Returns:
        Columns: number of jobs and their total seconds; core-hours, GPU-hours and their price;
        tokens of training rollouts and continuations; judge dollars, including unconfirmed calls.
    """
    prices, jobs = profile.prices, []
    for made in linked_jobs(folder):
        if "taken_from" in made:
            continue
        resource, seconds = needs(resources, made["stage"], profile.cores), made["seconds"]
        hours = seconds / 3600
        money = prices.of_job(seconds, resource) if prices else 0.0
        arm = made["job"]["method"] or SHARED
        jobs.append((arm, 1, seconds, hours * resource.threads, hours * resource.gpu, money))
    table = (
        pd.DataFrame(jobs, columns=_JOBS).groupby("arm").sum().join(_played(folder), how="outer")
    )
    order = dict.fromkeys((SHARED, *arms, *sorted(table.index)))
    table = table.fillna(0.0).loc[[arm for arm in order if arm in table.index]]
    table = pd.concat([table, table.sum().to_frame("all").T]).rename_axis("arm")
    table = table.astype({"jobs": int})
    return table if prices else table.drop(columns="money")


def _played(folder: Path) -> pd.DataFrame:
    logs = read_logs(sorted(folder.glob("rl/*/*/*/train_log.json")))
    if logs.empty:
        return pd.DataFrame(columns=["tokens", "judge_dollars"], dtype=float)
    ends = play_by_round(logs).groupby(["method", "seed"]).last()
    paid = logs[["judge_dollars", "judge_dollars_unconfirmed"]].sum(axis=1)
    tokens, paid = ends.groupby("method")["tokens"].sum(), paid.groupby(logs["method"]).sum()
    return pd.DataFrame({"tokens": tokens, "judge_dollars": paid})


def lines(costs: pd.DataFrame, prices: Prices | None) -> list[str]:
    """The lines of the cost table, and a note if the prices are only examples."""
    table = costs.reset_index()
    heads, formats = zip(*(_COLUMNS[name] for name in table.columns), strict=True)
    heads = [head or prices.currency for head in heads]
    text = tabulate(table.values.tolist(), heads, "plain", floatfmt=formats)
    note = ["the profile's prices are examples"] if prices and prices.example else []
    return [*text.splitlines(), *note]


if __name__ == "__main__":
    run(main)
