"""Write a page that shows single trajectories, with turns coloured by the credit of each arm.

The page shows the first trajectories of the given rounds. If credit was compared with ground truth,
the page also shows rollouts with ground truth. It contains at most 500 trajectories and 16 MB.
Snakemake passes the first and last round of each run.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage viewer > viewer.json
  python -m hgrpo.cli.stage viewer --config viewer.json --out viewer \\
      --turns rl/*/*/round_[15]/turns.parquet
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from hgrpo.atomic import atomic_file
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.stages.files import round_folder, trained_rounds, truth_files
from hgrpo.stages.paths import Job, file, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "viewer"
JOB: tuple[str, ...] = ()
OUTPUTS = {"page": "index.html"}
RESOURCES = "report"
USES: tuple[str, ...] = ()
# With these limits, the page's filters respond instantly, and the page can be sent by e-mail.
_MOST = 500
_MOST_BYTES = 16_000_000


class Settings(Strict):
    """The study's name, the labels of its arms, and the rounds with ground truth."""

    study: str
    # A list of pairs (name, label), because JSON with sorted keys loses the order of a mapping.
    labels: list[tuple[str, str]]
    seed: int = 0
    truth_rounds: list[int] = Field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Files and folders in the options of the command."""

    turns: list[Path] = file("turns", "turns.parquet of the rounds to show", True, True)
    truth: list[Path] = folder("truth", "folders of rollouts with ground truth", True, True)
    agreement: Path | None = folder(
        "credits", "folder of the credit agreement on these rollouts", optional=True
    )
    out: Path = folder("page", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The study's name, the labels of its arms, and the rounds with ground truth."""
    truth = study.config.truth
    return {
        "study": study.config.name,
        "labels": [(name, arm.full_label) for name, arm in study.methods.items()],
        "seed": study.config.seeds[0],
        "truth_rounds": list(truth.after_rounds) if truth else [],
    }


def inputs(study: "Study", job: Job) -> dict:
    """The tables of each run's first and last rounds."""
    ends = [run for run in trained_rounds(study) if run[2] in (1, study.config.rounds)]
    folders = [round_folder("rl", *run) for run in ends]
    return {
        "turns": [f"{folder}/turns.parquet" for folder in folders],
        "sequences": [f"{folder}/sequences.parquet" for folder in folders],
    }


def extras(study: "Study") -> dict:
    """Optional inputs: rollouts with ground truth, and the credit of their turns."""
    truth = truth_files(study, "truth.parquet")
    return {"truth": truth, "credits": ["credit_agreement/credits.parquet"]} if truth else {}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the trajectories and write the page."""
    from hgrpo.report.logs import run_of
    from hgrpo.report.viewer import Source, collect, collect_truth, render, within

    sources = [Source(*run_of(path), path) for path in paths.turns]
    # Rollouts with ground truth are shown only if `paths.agreement` contains their credit.
    truth = zip(settings.truth_rounds, paths.truth, strict=bool(paths.truth))
    with_truth = dict(truth) if paths.agreement else {}
    most = _MOST // (2 if with_truth else 1)
    entries = collect(sources, most)
    labels = dict(settings.labels)
    labels |= {source.method: source.method for source in sources if source.method not in labels}
    for number, measured in with_truth.items():
        each = most // len(with_truth)
        entries += collect_truth(measured, paths.agreement, labels, settings.seed, number, each)
    entries = within(entries, _MOST_BYTES)
    if not entries:
        raise UserError("--turns: no trajectories to show; only trained arms have rounds")
    paths.out.mkdir(parents=True, exist_ok=True)
    with atomic_file(paths.out / OUTPUTS["page"]) as path:
        path.write_text(render(settings.study, entries, labels), encoding="utf-8")
    print(f"{len(entries)} trajectories: {paths.out / OUTPUTS['page']}")
