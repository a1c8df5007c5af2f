"""Write a study's figures and its table of results in the sizes and formats of a paper.

Every figure except the credit plots is written as SVG and PDF, in column width and in page width.
The table of results is written as LaTeX (column width) and as Markdown. The report's headline and
cautions appear below the table. To convert other tables to LaTeX, use `hgrpo.results`.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage paper > paper.json
  python -m hgrpo.cli.stage paper --config paper.json --episodes report/episodes.parquet \\
      --train-logs rl/*/*/*/train_log.json --fits credit_fit/*/*/*/train_log.json \\
      --findings report/findings.txt --out paper
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder
from hgrpo.stages import figures, report
from hgrpo.stages.comparison import Results, comparison, results
from hgrpo.stages.paths import Job, file, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "paper"
JOB: tuple[str, ...] = ()
OUTPUTS = {"latex": "results.tex", "markdown": "results.md"}
RESOURCES = "report"
USES: tuple[str, ...] = ()
# Figures that are too large for a paper, because they show credit next to whole texts.
_LEFT_OUT = ("credit", "credit_last_round")


class Settings(figures.Settings):
    """The settings of the stage figures, and the study's name."""

    study: str = "results"


@dataclass(frozen=True, kw_only=True)
class Paths(Results):
    """Files and folders in the options of the command."""

    findings: Path = file("findings", "findings.txt of the report")
    out: Path = folder("latex", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's name, its arms, and the settings of their comparison."""
    return comparison(study) | {"study": study.config.name}


def inputs(study: "Study", job: Job) -> dict:
    """Episodes, logs, and the report's findings."""
    return results(study) | {"findings": f"{report.FOLDER}/{report.OUTPUTS['findings']}"}


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and every figure of the study in every size and format."""
    from hgrpo.report.names import figure_names

    # The file names that `report.paper.save_sizes` writes. They are repeated here, because
    # importing that function would import matplotlib.
    sizes = [f"{size}.{kind}" for size in ("column", "page") for kind in ("svg", "pdf")]
    drawn = figure_names(comparison(study), study.config.rounds)
    pictures = [name for name in drawn if name not in _LEFT_OUT]
    return OUTPUTS | {"figures": [f"{name}_{size}" for name in pictures for size in sizes]}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the results, compare the arms, and write figures and tables."""
    from hgrpo.report.draw import study_drawings
    from hgrpo.report.latex import column_table
    from hgrpo.report.paper import caption, markdown, paper_table, save_sizes

    read, fits = figures.read(settings, paths)
    table, about = paper_table(read.comparison, read.arms), caption(read.comparison, read.arms)
    findings = paths.findings.read_text(encoding="utf-8").splitlines()
    with atomic_folder(paths.out) as out:
        # Credit plots are omitted because no turns are passed.
        for drawing in study_drawings(read, {}, {}, fits):
            save_sizes(drawing, out)
        (out / "results.tex").write_text(
            column_table(table, about, f"tab:{settings.study}", findings), encoding="utf-8"
        )
        (out / "results.md").write_text(markdown(table, [about, *findings]), encoding="utf-8")
    print(f"{paths.out}: wrote results.tex, results.md and the figures")
