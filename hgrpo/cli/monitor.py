"""Show the progress of a study: the jobs of every stage, and the progress of running jobs.

The command does not change the results folder, and runs on any machine with access to the folder.
Jobs marked `waiting` wait for other jobs or for a free core. The command also shows the total time
of the unfinished jobs, which is estimated as in `make plan`. When the report is finished, the
command prints the main findings.

Examples:
  python -m hgrpo.cli.monitor results/bakeoff              # until the report exists or Ctrl-C
  python -m hgrpo.cli.monitor results/bakeoff --once
"""

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.live import Live
from rich.text import Text

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.store.entry import read_plan
from hgrpo.study.recorded import recorded_file, recorded_study
from hgrpo.workflow.watch import JobStatus, State, screen, status_of, work_left


def main() -> None:
    """Print the screen once, or refresh it until the report is written."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--once", action="store_true", help="print the screen once and exit")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="default: 5")
    args = parser.parse_args()
    if args.once or not sys.stdout.isatty():
        print(look(args.results)[0])
        return
    with contextlib.suppress(KeyboardInterrupt):
        _watch(args.results, args.every)
        print((args.results / "report/findings.txt").read_text(encoding="utf-8"))


def look(results: Path) -> tuple[str, Sequence[JobStatus]]:
    """The screen of a study, and the states of its jobs."""
    study = recorded_study(results)
    jobs = [*map(status_of, read_plan(results))]
    return screen(study.config.name, jobs, work_left(study, jobs)), jobs


def _watch(results: Path, every: float) -> None:
    file = recorded_file(results)
    waits = f"waiting for {file}, which the study's first job writes; press Ctrl-C to exit"
    with Live(waits, auto_refresh=False) as live:
        while True:
            if file.is_file():
                text, jobs = look(results)
                live.update(Text(text), refresh=True)
                if all(status.state is State.DONE for status in jobs):
                    return
            time.sleep(every)


if __name__ == "__main__":
    run(main)
