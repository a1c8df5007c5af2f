"""Fit a learned credit assigner on the rounds played so far, for use in the next round.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage credit_fit --method TurnRDV2 \\
      > fit.json
  python -m hgrpo.cli.stage credit_fit --config fit.json --seed 11 --round 2 \\
      --rounds results/bakeoff/rl/TurnRDV2/seed_11/round_{1,2} \\
      --out results/bakeoff/credit_fit/TurnRDV2/seed_11/round_2
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder
from hgrpo.config.strict import Strict
from hgrpo.credit.kinds import CreditConfig, load
from hgrpo.errors import UserError
from hgrpo.progress import Bar
from hgrpo.stages.files import fitted_files, round_folder
from hgrpo.stages.paths import Job, folder

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "credit_fit/{method}/seed_{seed}/round_{round}"
JOB = ("seed", "round")
OUTPUTS = {"model": "model.safetensors", "card": "model.json", "log": "train_log.json"}
RESOURCES = {"mem_mb": 1500}
USES = ("credit",)


class Settings(Strict):
    """The settings of the credit assigner."""

    credit: CreditConfig


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    rounds: list[Path] = folder("turns", "folders of all training rounds so far", many=True)
    previous: Path | None = folder("fitted", "earlier fit, for a warm start", optional=True)
    out: Path = folder("model", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The credit settings of the method."""
    return {"credit": study.methods[method].credit.model_dump(mode="json")}


def inputs(study: "Study", job: Job) -> dict:
    """Turns and sequences of all rounds so far, and the previous fit in case of a warm start."""
    rounds = range(1, job.round + 1)
    folders = [round_folder("rl", job.method, job.seed, number) for number in rounds]
    files = {
        name: [f"{folder}/{name}.parquet" for folder in folders] for name in ("turns", "sequences")
    }
    if study.methods[job.method].credit.declared.continues_fit:
        files |= fitted_files(study, job.method, job.seed, job.round)
    return files


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Fit the assigner, and write its weights, model.json and log."""
    credit = settings.credit
    if not credit.declared.fits:
        raise UserError(f"--config: credit.kind {credit.kind!r} is not a learned assigner")
    with atomic_folder(paths.out) as out, Bar(desc=credit.kind) as bar:

        def show(total: int, unit: str) -> Callable[[str], None]:
            bar.total, bar.unit = total, unit

            def step(word: str) -> None:
                bar.set_postfix_str(word, refresh=False)
                bar.update()

            return step

        message = load(credit.kind).fit(
            credit.declared, paths.rounds, paths.previous, job.seed, job.round, out, show
        )
    print(message)
