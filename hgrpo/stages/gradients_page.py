"""Write the page about gradients: norms by bucket, their slopes, and which part dominates.

Example:
  snakemake gradients --config study=sokoban_gradients
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder
from hgrpo.config.strict import Strict
from hgrpo.stages.files import gradient_evaluations, gradient_files
from hgrpo.stages.job import Job
from hgrpo.stages.paths import file, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "gradients_page"
JOB: tuple[str, ...] = ()
OUTPUTS = {
    "page": "index.html",
    "buckets": "buckets.csv",
    "slopes": "slopes.csv",
    "dominance": "dominance.csv",
}
RESOURCES = "report"


class Settings(Strict):
    """Which study the page is about, how it names the arms, and the steps of a round."""

    study: str
    # (name, label) in display order, which JSON with sorted keys would lose in a mapping.
    labels: list[tuple[str, str]]
    steps_per_round: int


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The command's files."""

    buckets: list[Path] = file("tables", "buckets.csv of every policy", many=True)
    groups: list[Path] = file("groups", "groups.csv of every policy", many=True)
    evaluations: list[Path] = file(
        "evaluations", "summaries of the policies' evaluations", optional=True, many=True
    )
    out: Path = folder("page", "folder to write")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's name, its trained arms' labels, and the steps of a round."""
    return {
        "study": study.config.name,
        "labels": [(name, arm.shown_label) for name, arm in study.methods.items() if arm.train],
        "steps_per_round": study.config.training.steps_per_round,
    }


def inputs(study: "Study", job: Job) -> dict:
    """The tables of all policies, and their evaluations if the page shows them."""
    return {
        "tables": gradient_files(study, "buckets.csv"),
        "groups": gradient_files(study, "groups.csv"),
        "evaluations": gradient_evaluations(study),
    }


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the tables, and write the page, its tables and its figures."""
    from hgrpo.evaluation.gradients.slopes import dominance, slopes, weighted_norms
    from hgrpo.report.csv_file import write_csv
    from hgrpo.report.figures.gradient_buckets import Measured, policy_figures
    from hgrpo.report.figures.gradients import gradient_norms
    from hgrpo.report.gradients_page import headline, read_success, read_tables, render
    from hgrpo.report.style import save

    buckets = read_tables(paths.buckets, ("pass", "bucket", "component"))
    groups = read_tables(paths.groups, ("task", "deviation"))
    norms, labels, steps = weighted_norms(buckets), dict(settings.labels), settings.steps_per_round
    found, who = slopes(norms), dominance(norms)
    drawings = [gradient_norms(norms, *arm, steps) for arm in settings.labels]
    for method, label in settings.labels:
        for round in sorted(buckets["round"].unique()):
            own = [
                each.query("method == @method and round == @round") for each in (buckets, groups)
            ]
            drawings += policy_figures(Measured(method, label, int(round) * steps, *own))
    figures = []
    with atomic_folder(paths.out) as out:
        for drawing in drawings:
            save(drawing, out)
            svg = (out / f"{drawing.name}.svg").read_text()
            told = ("name", "section", "title", "caption", "alt")
            figures.append({name: getattr(drawing, name) for name in told} | {"svg": svg})
        success = read_success(paths.evaluations)
        page = render(settings.study, labels, steps, found, who, success, figures)
        (out / OUTPUTS["page"]).write_text(page, encoding="utf-8")
        for name, rows in (("buckets", buckets), ("slopes", found), ("dominance", who)):
            write_csv(rows, out / OUTPUTS[name])
    print(f"{headline(who)}. {paths.out / OUTPUTS['page']}")
