"""Draw all figures of a study from cached results, each as an SVG and a CSV with its data.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage figures > figures.json
  python -m hgrpo.cli.stage figures --config figures.json --episodes report/episodes.parquet \\
      --train-logs rl/*/*/*/train_log.json --turns rl/*/*/round_[15]/turns.parquet \\
      --fits credit_fit/*/*/*/train_log.json --out report/figures
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from hgrpo.atomic import atomic_folder
from hgrpo.config.strict import Strict
from hgrpo.stages.comparison import Results, comparison, results
from hgrpo.stages.files import round_folder, trained_rounds
from hgrpo.stages.paths import Job, file, folder

if TYPE_CHECKING:
    import pandas as pd

    from hgrpo.report.inputs import Inputs
    from hgrpo.study.study import Study

FOLDER = "report/figures"
JOB: tuple[str, ...] = ()
OUTPUTS = {"index": "index.json"}
RESOURCES = "report"
USES: tuple[str, ...] = ()


class Settings(Strict):
    """The keys from `hgrpo.stages.comparison.comparison`."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass(frozen=True, kw_only=True)
class Paths(Results):
    """Files and folders in the options of the command."""

    turns: list[Path] = file("turns", "turns.parquet of first and last rounds", True, True)
    out: Path = folder("index", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's arms, and the settings of their comparison."""
    return comparison(study)


def inputs(study: "Study", job: Job) -> dict:
    """Episodes, training logs, and the turns and sequences of the rounds shown in credit plots."""
    return results(study) | {
        "turns": _pictured(study, "turns.parquet"),
        "sequences": _pictured(study, "sequences.parquet"),
    }


def _pictured(study: "Study", name: str) -> list[str]:
    """Paths of the file `name` in all first rounds, and in last rounds if credit is learned."""
    return [
        f"{round_folder('rl', method, seed, round)}/{name}"
        for method, seed, round in trained_rounds(study)
        if round == 1
        or (round == study.config.rounds and study.methods[method].credit.declared.fits)
    ]


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and the SVG and CSV files of all figures, including figures of single runs."""
    return {"figures": [f"{name}.{kind}" for name in names(study) for kind in ("svg", "csv")]} | (
        OUTPUTS
    )


def names(study: "Study") -> list[str]:
    """Names of all figures, in drawing order."""
    from hgrpo.report.names import figure_names, run_figures

    settings = comparison(study)
    return [
        *figure_names(settings, study.config.rounds),
        *run_figures(settings, study.config.seeds),
    ]


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the results, compare the arms and draw the figures."""
    from hgrpo.report.draw import draw_all
    from hgrpo.report.logs import read_first_turns, read_last_turns

    inputs, fits = read(settings, paths)
    turns = read_first_turns(paths.turns)
    last = read_last_turns(paths.turns, inputs.arms.fitted)
    with atomic_folder(paths.out) as out:
        index = draw_all(inputs, turns, last, fits, out)
    print(f"{len(index)} figures: {paths.out}")


def read(settings: Settings, paths: Results) -> "tuple[Inputs, pd.DataFrame]":
    """Read the study's results, and the logs of the credit fits that are shown in figures."""
    from hgrpo.report.inputs import read_inputs
    from hgrpo.report.logs import read_fits, run_of

    config = settings.model_extra or {}
    inputs = read_inputs(config, paths.episodes, paths.train_logs, paths.fits)
    # Read only the logs of the arms in the figure `turnrd`. Logs of other arms have other columns.
    learnt = inputs.arms.with_figure("turnrd")
    return inputs, read_fits([path for path in paths.fits if run_of(path)[0] in learnt])
