"""Run and report the studies of the sandbox; rules/sandbox.smk calls this.

Examples:
  snakemake sandbox_influence     one study, with its tables and figures
  snakemake sandbox_all           every study, and results/sandbox/sandbox.html
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hgrpo.atomic import atomic_file
from hgrpo.command import run
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.studies.study import SandboxStudy


def main(words: Sequence[str] | None = None) -> None:
    """Do one job of a study."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("job", choices=_JOBS, help="what to do")
    parser.add_argument("--config", required=True, help="what the job is told, as JSON")
    parser.add_argument("--code", default="", help="run: hash of the code that was planned")
    parser.add_argument("--output", type=Path, required=True, help="folder, or the page's file")
    args = parser.parse_args(words)
    try:
        told = json.loads(args.config)
    except ValueError as error:
        raise UserError(f"--config: not JSON ({error})") from None
    _JOBS[args.job](told, args.code, args.output)


def _run(told: Mapping[str, Any], code: str, target: Path) -> None:
    """Train one run, if the code is still the one that its folder is named after."""
    from hgrpo.sandbox.studies.pieces import PIECES
    from hgrpo.sandbox.studies.training import train_arm
    from hgrpo.workflow.sandbox_rules import run_code

    settings = validate(PIECES[told["piece"]].model, told["settings"], told["piece"])
    now = run_code(told["piece"], settings)
    if code and now != code:
        raise UserError(f"{target}: the code was edited since this run was planned; run it again")
    train_arm(told["piece"], told["settings"], now, target)


def _statistics(told: Mapping[str, Any], code: str, target: Path) -> None:
    from hgrpo.sandbox.studies.statistics import write_statistics

    write_statistics(_study(told), _runs(told), target)


def _figures(told: Mapping[str, Any], code: str, target: Path) -> None:
    from hgrpo.sandbox.studies.figures import write_figures

    write_figures(told["name"], _study(told), _runs(told), told["settings"], target)


def _tiny(told: Mapping[str, Any], code: str, target: Path) -> None:
    """Train all runs of a study that are not there yet, then write its tables and figures."""
    from hgrpo.sandbox.studies.results import FIGURES

    folders = _runs(told["statistics"]).values()
    for folder in dict.fromkeys(folders):
        if not folder.exists():
            own = {"piece": told["piece"], "settings": told["runs"][folder.name]}
            _run(own, "", folder)
    _statistics(told["statistics"], code, target)
    _figures(told["figures"], code, target / FIGURES)


def _page(told: Mapping[str, Any], code: str, target: Path) -> None:
    from hgrpo.sandbox.studies.page import read_report, render

    folder = target.parent / "studies"
    shown = [
        read_report(name, validate(SandboxStudy, declared, name), folder / name)
        for name, declared in told["studies"].items()
    ]
    with atomic_file(target) as path:
        path.write_text(render(shown, told["tiny"]), encoding="utf-8")


def _study(told: Mapping[str, Any]) -> SandboxStudy:
    return validate(SandboxStudy, told["study"], told["name"])


def _runs(told: Mapping[str, Any]) -> dict[str, Path]:
    return {label: Path(folder) for label, folder in told["runs"].items()}


_JOBS = {
    "run": _run,
    "statistics": _statistics,
    "figures": _figures,
    "tiny": _tiny,
    "page": _page,
}

if __name__ == "__main__":
    run(main)
