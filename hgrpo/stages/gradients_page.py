"""Write the gradients page: gradient norms by bucket, slopes, and the dominant loss component.

Example:
  snakemake gradients --config study=sokoban_gradients
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder
from hgrpo.config.strict import Strict
from hgrpo.stages.files import gradient_evaluations, gradient_files
from hgrpo.stages.paths import Job, file, folder

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
USES: tuple[str, ...] = ()


class Settings(Strict):
    """The study's name and its trained arms."""

    study: str
    # One tuple (name, label, steps per round) per arm, in the order of the study's file.
    arms: list[tuple[str, str, int]]


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Files and folders in the options of the command."""

    buckets: list[Path] = file("tables", "buckets.csv of every policy", many=True)
    groups: list[Path] = file("groups", "groups.csv of every policy", many=True)
    evaluations: list[Path] = file(
        "evaluations", "summaries of the policies' evaluations", optional=True, many=True
    )
    out: Path = folder("page", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's name, and the name, label and steps per round of each trained arm."""
    return {
        "study": study.config.name,
        "arms": [
            (name, arm.full_label, study.training[name].steps_per_round)
            for name, arm in study.methods.items()
            if arm.train
        ],
    }


def inputs(study: "Study", job: Job) -> dict:
    """The gradient tables of all policies and, if configured, their evaluations."""
    return {
        "tables": gradient_files(study, "buckets.csv"),
        "groups": gradient_files(study, "groups.csv"),
        "evaluations": gradient_evaluations(study),
    }


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the tables, and write the page with its own tables and figures."""
    from hgrpo.evaluation.gradients.slopes import bucket_means, dominance, slopes, weighted_norms
    from hgrpo.report.csv_file import write_csv
    from hgrpo.report.figures.gradient_buckets import Measured, policy_figures
    from hgrpo.report.figures.gradients import gradient_norms
    from hgrpo.report.gradients_page import (
        GradientArm,
        headline,
        read_success,
        read_tables,
        render,
    )
    from hgrpo.report.style import Drawing, save

    arms = {name: GradientArm(label, steps) for name, label, steps in settings.arms}
    buckets = read_tables(paths.buckets, ("pass", "bucket", "component", "signal"))
    groups = read_tables(paths.groups, ("task", "deviation"))
    norms = weighted_norms(buckets)
    tables = {
        "buckets": bucket_means(buckets),
        "slopes": slopes(norms),
        "dominance": dominance(norms),
        "success": read_success(paths.evaluations),
    }

    def drawings() -> Iterator[Drawing]:
        for name, arm in arms.items():
            yield gradient_norms(norms, name, arm.label, arm.steps)
        for (method, round), rows in buckets.groupby(["method", "round"], sort=False):
            played = groups[(groups["method"] == method) & (groups["round"] == round)]
            steps = int(round) * arms[method].steps
            yield from policy_figures(Measured(method, arms[method].label, steps, rows, played))

    figures = []
    with atomic_folder(paths.out) as out:
        for drawing in drawings():
            save(drawing, out)
            svg = (out / f"{drawing.name}.svg").read_text(encoding="utf-8")
            texts = ("name", "section", "title", "caption", "alt")
            figures.append({name: getattr(drawing, name) for name in texts} | {"svg": svg})
        page = render(settings.study, arms, tables, figures)
        (out / OUTPUTS["page"]).write_text(page, encoding="utf-8")
        for name in ("slopes", "dominance"):
            write_csv(tables[name], out / OUTPUTS[name])
        write_csv(buckets, out / OUTPUTS["buckets"])
    print(f"{headline(tables['dominance'])}. {paths.out / OUTPUTS['page']}")
