"""Show how far a study is: the state of every stage, and the progress of every run.

The command reads what the jobs write while they run, on any machine that sees the results folder.
It writes nothing. Results beside a run are those of its newest training step and of its newest
evaluation; `test` is greedy success on the test panel. A `waiting` job waits for other jobs or for
a core. Work left is the sum of the unfinished jobs' times, as `make plan` estimates them. When the
report is written, the command prints its headline and ends.

Examples:
  python -m hgrpo.cli.monitor results/bakeoff              # until the report, or Ctrl-C
  python -m hgrpo.cli.monitor results/bakeoff --once
"""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live

from hgrpo.cli.entry import command_parser, pause
from hgrpo.command import run
from hgrpo.store.entry import read_plan
from hgrpo.study.recorded import recorded_file, recorded_study
from hgrpo.workflow.watch.screen import screen, work_left
from hgrpo.workflow.watch.status import JobStatus, is_over, job_statuses

_WIDTH = 120  # characters of a line if the output is not a terminal


def main() -> None:
    """Parse the arguments, and show the screen once or until the report is written."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--once", action="store_true", help="print the screen and end")
    parser.add_argument("--every", type=pause, default=5.0, metavar="SECONDS", help="default 5")
    args = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    if args.once or not console.is_terminal:
        console.print(look(args.results, 10_000)[0])
        return
    try:
        _watch(console, args.results, args.every)
    except KeyboardInterrupt:
        return
    headline = (args.results / "report/findings.txt").read_text(encoding="utf-8")
    console.print(headline, markup=False, highlight=False)


def look(results: Path, height: int) -> tuple[Group, Sequence[JobStatus]]:
    """The screen of a study, of `height` lines, and the states of its jobs.

    Raises:
        UserError: config.yaml is missing or wrong.
    """
    study = recorded_study(results)
    jobs = job_statuses(read_plan(results))
    return screen(study.config.name, jobs, work_left(study, jobs), height), jobs


def _watch(console: Console, results: Path, every: float) -> None:
    """Show the screen again and again until the study is over."""
    file = recorded_file(results)
    waits = f"waiting for {file}, which the study's first job writes; Ctrl-C ends this"
    with Live(waits, console=console, auto_refresh=False) as live:
        while True:
            if file.is_file():
                shown, jobs = look(results, console.height)
                live.update(shown, refresh=True)
                if is_over(jobs):
                    return
            time.sleep(every)


if __name__ == "__main__":
    run(main)
