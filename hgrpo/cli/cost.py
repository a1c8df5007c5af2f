"""Print what a study has cost so far, by arm: seconds, GPU-hours, tokens, judges and money.

Seconds are those that Snakemake measured. Money is for cores and GPUs by the prices of a profile;
what judges were paid stands beside it.

Examples:
    python -m hgrpo.cli.cost results/bakeoff
    python -m hgrpo.cli.cost results/alfworld_5x40 --profile profiles/one-gpu --csv > cost.csv
"""

from pathlib import Path

import pandas as pd
from tabulate import tabulate

from hgrpo.cli.entry import add_profile, command_parser
from hgrpo.command import run
from hgrpo.study.recorded import recorded_study
from hgrpo.workflow.planning.profile import Prices, read_profile
from hgrpo.workflow.planning.spent import Spent, spent

_HEAD = ("arm", "jobs", "seconds", "core-hours", "GPU-hours", "tokens", "judge $")


def main() -> None:
    """Print the table, as text or as CSV."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="results/<study>")
    about = "folder of a profile with prices.yaml (default profiles/laptop, which has none)"
    add_profile(parser, about)
    parser.add_argument("--csv", action="store_true", help="as CSV, with unrounded numbers")
    args = parser.parse_args()
    study, profile = recorded_study(args.results), read_profile(args.profile)
    # config.yaml holds the arms by name; a reader looks for what all others are measured against.
    order = sorted(
        study.methods, key=lambda arm: (study.methods[arm].train, arm != study.config.reference)
    )
    found = spent(args.results, order, study.config.resources, profile)
    if args.csv:
        print(pd.DataFrame(found).to_csv(index=False, lineterminator="\n"), end="")
        return
    print("\n".join(lines(found, profile.prices)))


def lines(found: list[Spent], prices: Prices | None) -> list[str]:
    """The table as text, with a note if the prices are made up."""
    head = [*_HEAD, *([prices.currency] if prices else [])]
    align = ["left", *["right"] * (len(head) - 1)]
    table = tabulate([_cells(row) for row in found], head, "plain", colalign=align)
    note = ["the profile's prices are examples"] if prices and prices.example else []
    return [*table.splitlines(), *note]


def _cells(row: Spent) -> list[str]:
    cells = [
        *(row.arm, str(row.jobs), f"{row.seconds:,.0f}", f"{row.core_hours:.2f}"),
        *(f"{row.gpu_hours:.2f}", f"{row.tokens:,.0f}", f"{row.judge_dollars:.2f}"),
    ]
    return [*cells, f"{row.money:.2f}"] if row.money is not None else cells


if __name__ == "__main__":
    run(main)
