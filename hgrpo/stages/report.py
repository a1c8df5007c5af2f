"""Write report.html, findings.txt, the tables and methods_comparison.json from cached results.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage report > report.json
  python -m hgrpo.cli.stage report --config report.json --study config.yaml \\
      --episodes report/episodes.parquet --train-logs rl/*/*/*/train_log.json \\
      --fits credit_fit/*/*/*/train_log.json \\
      --figures report/figures --snapshots rl/*/*/*/config.yaml \\
      --rounds rl/*/*/*/summary.json --expert expert/summary.json --sft sft/summary.json \\
      --assets assets/manifest.json --out report/report.html \\
      --comparison report/methods_comparison.json --findings report/findings.txt \\
      --tables report/tables
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from hgrpo.atomic import atomic_file, atomic_folder, write_json
from hgrpo.config.strict import Strict
from hgrpo.stages.comparison import Results, comparison, results
from hgrpo.stages.files import round_files
from hgrpo.stages.paths import Job, file, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "report"
JOB: tuple[str, ...] = ()
OUTPUTS = {
    "page": "report.html",
    "comparison": "methods_comparison.json",
    "findings": "findings.txt",
}
RESOURCES: dict[str, int] = {}
USES: tuple[str, ...] = ()


class Settings(Strict):
    """The settings from `comparison`, and the study's name, description and overrides.

    `overridden` maps each key that was overridden on the command line to its value.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    study: str = ""
    description: str = ""
    overridden: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Paths(Results):
    """Files and folders in the options of the command."""

    study: Path = file("study", "the study's config.yaml")
    figures: Path = folder("index", "folder of the figures stage")
    snapshots: list[Path] = file("snapshots", "config.yaml of every round", True, True)
    rounds: list[Path] = file("rounds", "summary.json of every round", True, True)
    expert: Path | None = file("expert", "summary.json of the expert stage", optional=True)
    sft: Path | None = file("sft", "summary.json of supervised fine-tuning", optional=True)
    assets: Path | None = file("assets", "manifest.json of the assets", optional=True)
    agreement: Path | None = folder("twins", "folder of the credit agreement", optional=True)
    out: Path = file("page", "report.html to write")
    comparison: Path = file("comparison", "JSON file to write")
    findings: Path = file("findings", "text file to write the headline and cautions to")
    tables: Path = folder("tables", "output folder of the tables as CSV")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The comparison's settings, and the study's name, description and overrides."""
    about = {"study": study.config.name, "description": study.config.description}
    return comparison(study) | about | {"overridden": dict(study.overridden)}


def inputs(study: "Study", job: Job) -> dict:
    """All files whose content is shown on the page."""
    from hgrpo.stages import figures

    figures_made = figures.outputs(study)["figures"]
    return results(study) | {
        "study": "config.yaml",
        "index": "report/figures/index.json",
        "figures": [f"{figures.FOLDER}/{name}" for name in figures_made],
        "snapshots": round_files(study, "config.yaml"),
        "rounds": round_files(study, "summary.json"),
        "expert": "expert/summary.json",
        "sft": "sft/summary.json",
        "assets": "assets/manifest.json",
    }


def extras(study: "Study") -> dict:
    """The credit agreement. It is optional, because ground truth takes a long time to measure."""
    return {"twins": ["credit_agreement/twins.csv"]}


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and every table."""
    from hgrpo.report.names import table_names

    return {**OUTPUTS, "tables": [f"tables/{name}.csv" for name in table_names(comparison(study))]}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the results, compare the arms, and write the page, the tables and the JSON summary."""
    from hgrpo.report.cautions import arm_cautions, confounded, more_play, twin_cautions
    from hgrpo.report.csv_file import write_csv
    from hgrpo.report.export_comparison import methods_comparison
    from hgrpo.report.inputs import read_inputs
    from hgrpo.report.logs import last_day
    from hgrpo.report.page import Page, render
    from hgrpo.report.page_rows import provenance_rows, read_mapping
    from hgrpo.report.tables import all_tables, scripted_players

    study = read_mapping(paths.study)
    inputs = read_inputs(settings.model_extra or {}, paths.episodes, paths.train_logs, paths.fits)
    made = {"assets": paths.assets, "expert": paths.expert, "sft": paths.sft}
    stages = {name: read_mapping(path) for name, path in made.items() if path}
    snapshots = {"study": [study]} | {name: [stage] for name, stage in stages.items()}
    snapshots["rl rounds"] = [read_mapping(path) for path in paths.snapshots]
    scripted = scripted_players(stages.get("expert", {}))
    rounds = [read_mapping(path) for path in paths.rounds]
    page = Page(
        study=settings.study or study.get("name", ""),
        description=settings.description,
        inputs=inputs,
        figures=paths.figures,
        study_config=study,
        provenance=provenance_rows(snapshots),
        scripted=scripted,
        left_out=left_out(stages),
        overridden=settings.overridden,
        finished=last_day(paths.train_logs),
        truth=paths.agreement,
        supervised=supervised(stages.get("sft", {})),
        cautions=[
            *confounded(inputs.arms, snapshots["rl rounds"]),
            *more_play(inputs.arms, rounds),
            *arm_cautions(inputs.arms, rounds),
            *twin_cautions(paths.agreement),
        ],
    )
    tables = all_tables(inputs, scripted)
    labels = {name: inputs.arms.label(name) for name in inputs.arms.names}
    manifest = methods_comparison(inputs.comparison, inputs.episodes, labels, study)
    html = render(page)
    with atomic_folder(paths.tables) as out:
        for name, table in tables.items():
            write_csv(table, out / f"{name}.csv")
    with atomic_file(paths.comparison) as path:
        write_json(path, manifest)
    answer = page.answer()
    with atomic_file(paths.findings) as path:
        path.write_text("\n".join([answer.headline, *answer.cautions, ""]), encoding="utf-8")
    with atomic_file(paths.out) as path:
        path.write_text(html, encoding="utf-8")
    print(answer.headline, *answer.cautions, paths.out)


def supervised(sft: Mapping) -> str:
    """The hash of the SFT policy's weights and, if the user provided the adapter, its folder."""
    source = f", taken from {sft['taken_from']}" if "taken_from" in sft else ""
    return f"weights {sft['weights']}{source}" if "weights" in sft else ""


def left_out(stages: Mapping[str, Mapping]) -> Sequence[tuple[str, str, int]]:
    """Count excluded tasks and trajectories, and notes on others, as (stage, reason, count)."""
    rows = [
        (name, reason, count)
        for name, stage in stages.items()
        for reason, count in (stage.get("skipped") or {}).items()
        if count
    ]
    too_long = stages.get("sft", {}).get("too_long", 0)
    return [*rows, ("sft", "too long", too_long)] if too_long else rows
