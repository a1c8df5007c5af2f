"""Show the progress of every run of a study: round, step, reward, KL, success, time left.

The command reads what the rounds write after every step, on any machine that sees the results
folder. It writes nothing. Reward, success, KL and dead groups belong to the newest training step.
`test` is greedy success on the test panel after the last evaluated round. Time left covers the
run's remaining training steps, without evaluations.

Examples:
  python -m hgrpo.cli.monitor results/bakeoff              # until every run is done, or Ctrl-C
  python -m hgrpo.cli.monitor results/bakeoff --once
"""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hgrpo.cli.entry import command_parser, pause
from hgrpo.command import run
from hgrpo.report.run_status import RunStatus, study_status

_COLUMNS = (
    *("arm", "seed", "round", "step", "reward", "success", "KL", "dead", "test"),
    *("last step", "time left"),
)
_WIDTH = 120  # characters of a line if the output is not a terminal


def main() -> None:
    """Parse the arguments, and show the table once or until every run is done."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--once", action="store_true", help="print the table and end")
    parser.add_argument("--every", type=pause, default=5.0, metavar="SECONDS", help="default 5")
    args = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    if args.once or not console.is_terminal:
        console.print(table(study_status(args.results)))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            runs = study_status(args.results)
            live.update(table(runs), refresh=True)
            if all(found.done for found in runs):
                return
            time.sleep(args.every)


def table(runs: Sequence[RunStatus]) -> Group:
    """A table of the runs, and a line with the totals."""
    shown = Table(*_COLUMNS, box=None, pad_edge=False, header_style="bold")
    for column in shown.columns:
        column.no_wrap = True
    for column in shown.columns[1:]:
        column.justify = "right"
    for found in runs:
        shown.add_row(*cells(found), style="dim" if found.done else "")
    done = sum(found.finished for found in runs)
    total = sum(found.rounds for found in runs)
    left = [found.left_s for found in runs]
    known = all(seconds is not None for seconds in left)
    work = f", {duration(sum(left))} of training left" if known and done < total else ""
    return Group(shown, Text(f"{done} of {total} rounds finished{work}"))


def cells(found: RunStatus) -> list[str]:
    """One row of the table."""
    row = found.row
    number = min(found.finished + 1, found.rounds)
    if found.done:
        step = "done"
    elif found.step is None:
        step = "waiting"
    else:
        step = f"{found.step}/{found.steps}"
    return [
        found.method,
        str(found.seed),
        f"{number}/{found.rounds}",
        step,
        _shown(row.get("mean_reward"), "{:.3f}"),
        _shown(row.get("success_rate"), "{:.1%}"),
        _shown(row.get("observed_kl"), "{:.4f}"),
        _share(row.get("dead_groups"), row.get("n_groups")),
        _shown(found.test_success, "{:.1%}"),
        "" if found.done or found.heard_s is None else f"{duration(found.heard_s)} ago",
        "" if found.done else "?" if found.left_s is None else duration(found.left_s),
    ]


def duration(seconds: float) -> str:
    """Seconds as text, such as `45 s`, `12 min` or `3 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _share(part: float | None, whole: float | None) -> str:
    return "" if part is None or whole is None else f"{part}/{whole}"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


if __name__ == "__main__":
    run(main)
