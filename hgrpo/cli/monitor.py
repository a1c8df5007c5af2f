"""Show how far a study is: the state of every stage, and the progress of every run.

The command reads what the jobs write while they run, on any machine that sees the results folder.
It writes nothing. Reward, success, KL and dead groups belong to a run's newest training step.
`test` is greedy success on the test panel after the last evaluated round. A `queued` job has its
inputs and waits for a core. A job that is `not started` waits for other jobs. Work left is the sum
of the unfinished jobs' times, as `make plan` estimates them. On a narrow screen, some columns are
left out. When the report is written, the command prints its headline and ends.

Examples:
  python -m hgrpo.cli.monitor results/bakeoff              # until the report, or Ctrl-C
  python -m hgrpo.cli.monitor results/bakeoff --once
"""

import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from hgrpo.cli.entry import command_parser, pause
from hgrpo.command import run
from hgrpo.report.run_status import study_status
from hgrpo.study.recorded import recorded_file, recorded_study
from hgrpo.workflow.ending import finding
from hgrpo.workflow.watch.jobs import study_jobs
from hgrpo.workflow.watch.runs import run_plans
from hgrpo.workflow.watch.screen import Seen, screen, work_left
from hgrpo.workflow.watch.status import State, is_over, job_statuses

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
        console.print(screen(look(args.results, 0), console.width, 10_000))
        return
    try:
        _watch(console, args.results, args.every)
    except KeyboardInterrupt:
        return
    console.print(finding(args.results), markup=False, highlight=False)


def look(results: Path, at_once: int) -> Seen:
    """Read a study's files; `at_once` is the most jobs that were seen to run together so far.

    Raises:
        UserError: config.yaml is missing or wrong, or a log or an episodes file is damaged.
    """
    study = recorded_study(results)
    jobs = job_statuses(study_jobs(study, results))
    running = sum(status.state is State.RUNNING for status in jobs)
    runs = study_status(results, run_plans(study))
    work = work_left(study, results, jobs)
    return Seen(study.config.name, jobs, runs, work, max(at_once, running))


def _watch(console: Console, results: Path, every: float) -> None:
    """Show the screen again and again until the study is over."""
    at_once = 0
    with Live(console=console, auto_refresh=False) as live:
        while True:
            if recorded_file(results).is_file():
                seen = look(results, at_once)
                at_once = seen.at_once
                live.update(screen(seen, console.width, console.height), refresh=True)
                if is_over(seen.jobs):
                    return
            else:
                file = recorded_file(results)
                waits = f"waiting for {file}, which the study's first job writes; Ctrl-C ends this"
                live.update(Text(waits), refresh=True)
            time.sleep(every)


if __name__ == "__main__":
    run(main)
