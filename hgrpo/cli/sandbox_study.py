"""Run a job of a sandbox study; called by rules/sandbox.smk.

Examples:
  snakemake sandbox_influence     one study, with its tables and figures
  snakemake sandbox_all           every study, and results/sandbox/sandbox.html
"""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import command_parser, read_config
from hgrpo.command import run
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.studies.study import SandboxStudy


def main(words: Sequence[str] | None = None) -> None:
    """Run one job of a study."""
    parser = command_parser(__doc__)
    parser.add_argument("job", choices=_JOBS, help="kind of job")
    parser.add_argument("--config", required=True, help="the job's settings: JSON, or a file")
    parser.add_argument("--output", type=Path, required=True, help="output folder or page")
    args = parser.parse_args(words)
    _JOBS[args.job](read_config(args.config), args.output)


def _run(job: Mapping[str, Any], target: Path) -> None:
    from hgrpo.sandbox.studies.pieces import PIECES
    from hgrpo.sandbox.studies.training import train_arm
    from hgrpo.workflow.sandbox_rules import run_code

    settings = validate(PIECES[job["piece"]].model, job["settings"], job["piece"])
    code = run_code(job["piece"], settings)
    if job.get("code", code) != code:
        raise UserError(f"{target}: the code has changed since planning; start the run again")
    train_arm(job["piece"], job["settings"], code, target)


def _statistics(job: Mapping[str, Any], target: Path) -> None:
    from hgrpo.sandbox.studies.statistics import write_statistics

    write_statistics(_study(job), _runs(job), target)


def _figures(job: Mapping[str, Any], target: Path) -> None:
    from hgrpo.sandbox.studies.figures import write_figures

    write_figures(job["name"], _study(job), _runs(job), job["settings"], target)


def _tiny(job: Mapping[str, Any], target: Path) -> None:
    """Train the missing runs of a study, then write its tables and figures."""
    from hgrpo.sandbox.studies.results import FIGURES

    folders = _runs(job["statistics"]).values()
    for folder in dict.fromkeys(folders):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f".{folder.name}.lock").open("w", encoding="utf-8") as lock:
            # Studies share runs, so another job may be training the same run.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _run({"piece": job["piece"], "settings": job["runs"][folder.name]}, folder)
    _statistics(job["statistics"], target)
    _figures(job["figures"], target / FIGURES)


def _page(job: Mapping[str, Any], target: Path) -> None:
    from hgrpo.sandbox.studies.page import read_report, render

    folder = target.parent / "studies"
    studies = [
        read_report(name, validate(SandboxStudy, declared, name), folder / name)
        for name, declared in job["studies"].items()
    ]
    with atomic_file(target) as path:
        path.write_text(render(studies, job["tiny"]), encoding="utf-8")


def _study(job: Mapping[str, Any]) -> SandboxStudy:
    return validate(SandboxStudy, job["study"], job["name"])


def _runs(job: Mapping[str, Any]) -> dict[str, Path]:
    return {label: Path(folder) for label, folder in job["runs"].items()}


_JOBS = {
    "run": _run,
    "statistics": _statistics,
    "figures": _figures,
    "tiny": _tiny,
    "page": _page,
}

if __name__ == "__main__":
    run(main)
