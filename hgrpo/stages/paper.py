"""Write a study's figures and its table of results in the sizes and formats of a paper.

Every figure comes as SVG and PDF, as wide as a column and as wide as a page. The table of results
comes as LaTeX and Markdown. `hgrpo.results` reads every other table into pandas.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage paper > paper.json
  python -m hgrpo.cli.paper --config paper.json --episodes report/episodes.parquet \\
      --train-logs rl/*/*/*/train_log.json --turns rl/*/*/round_[15]/turns.parquet --out paper
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder
from hgrpo.stages import figures
from hgrpo.stages.comparison import comparison
from hgrpo.stages.job import Job
from hgrpo.stages.paths import file, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "paper"
JOB: tuple[str, ...] = ()
OUTPUTS = {"latex": "results.tex", "markdown": "results.md"}
RESOURCES = "report"
Settings = figures.Settings


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The command's files."""

    episodes: Path = file("episodes", "merged episodes.parquet")
    train_logs: list[Path] = file("logs", "train_log.json of every round", True, True)
    turns: list[Path] = file("turns", "turns.parquet of first and last rounds", True, True)
    fits: list[Path] = file("fits", "train_log.json of every fit between rounds", True, True)
    out: Path = folder("latex", "folder to write")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's arms, how to compare them, and its name."""
    return comparison(study) | {"study": study.config.name}


def inputs(study: "Study", job: Job) -> dict:
    """What the figures are drawn from."""
    return figures.inputs(study, job)


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and every figure of the study in every size and format."""
    from hgrpo.report.names import figure_names

    # What `paper_figure` writes; planning must not import matplotlib.
    sizes = [f"{size}.{kind}" for size in ("column", "page") for kind in ("svg", "pdf")]
    drawn = figure_names(comparison(study), study.config.rounds)
    pictures = [name for name in drawn if name not in _AS_TABLES]
    return OUTPUTS | {"figures": [f"{name}_{size}" for name in pictures for size in sizes]}


# Figures of text, which no paper prints.
_AS_TABLES = ("credit", "credit_last_round")


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the results, compare the arms, and write figures and tables."""
    from hgrpo.report.draw import study_drawings
    from hgrpo.report.endpoint_words import endpoint_phrase
    from hgrpo.report.paper_figure import save_sizes
    from hgrpo.report.paper_table import latex, markdown, paper_table

    given = settings.model_extra or {}
    read = figures.read(settings, paths)
    found = read[0].comparison
    seeds = len(set(found.seeds["seed"]))
    table = paper_table(found, read[0].arms)
    caption = (
        f"{endpoint_phrase(found).capitalize()}, greedy play on {found.n_test} test tasks, "
        f"{seeds} seed{'s' if seeds > 1 else ''}. Differences are in points and paired by seed and "
        "task; * holds after Holm's correction."
    )
    with atomic_folder(paths.out) as out:
        for drawing in study_drawings(*read):
            if drawing.section != "credit":
                save_sizes(drawing, out)
        (out / "results.tex").write_text(
            latex(table, caption, f"tab:{given.get('study', 'results')}")
        )
        (out / "results.md").write_text(markdown(table))
    print(f"{paths.out}: results.tex, results.md and the figures")
