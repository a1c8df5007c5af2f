"""Build the tiny base model (tokenizer, weights, pretraining), or convert a pretrained one.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage base > base.json
  python -m hgrpo.cli.stage base --config base.json --expert results/bakeoff/expert --seed 0 \\
      --out results/bakeoff/base
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.archive import pack
from hgrpo.atomic import atomic_folder
from hgrpo.base_model.folder import ARCHIVE, companions
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.policy.settings import ModelConfig
from hgrpo.progress import Bar
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages.paths import Job, folder
from hgrpo.stages.sections import EnvName

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "base"
JOB = ("seed",)
OUTPUTS = {
    "weights": "model.safetensors",
    "companions": ARCHIVE,
    "summary": "summary.json",
}
RESOURCES = {"mem_mb": 2000}
USES = ("env", "engine")


class Settings(Strict):
    """The model. `env` is set for a tiny model, and `engine` for a pretrained model."""

    model: ModelConfig
    env: EnvName | None = None
    engine: EngineConfig | None = None


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    expert: Path | None = folder("trajectories", "folder of the expert stage", optional=True)
    out: Path = folder("summary", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """Return the settings of this stage."""
    model = study.model.model_dump(mode="json")
    if study.model.tiny is not None:
        return {"model": model, "env": study.env.model_dump(mode="json", include={"name"})}
    return {"model": model, "engine": {"kind": study.config.engine.kind}}


def inputs(study: "Study", job: Job) -> dict:
    """The demonstrations, from which a tiny model is built; none for a pretrained model."""
    return {"trajectories": "expert/trajectories.parquet" if study.model.tiny else []}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Write the weights, an archive of the config and tokenizer files, and a summary."""
    from hgrpo.base_model.make import obtain

    with atomic_folder(paths.out) as out:
        if settings.model.tiny is not None:
            summary = _build(settings, job, paths, out)
        else:
            engine = (settings.engine or EngineConfig()).engine
            summary = obtain(settings.model, engine.check_playable, out)
        files = companions(out)
        pack(out, [path.name for path in files], out / ARCHIVE)
        for path in files:
            path.unlink()
    print(f"base: {summary['parameters']:,} parameters, vocabulary {summary['vocabulary']:,}")


def _build(settings: Settings, job: Job, paths: Paths, out: Path) -> dict:
    from hgrpo.base_model.make import build
    from hgrpo.learning.imitation import pretrain, read_demonstrations, texts

    if settings.env is None or paths.expert is None:
        raise UserError(
            "building a tiny model requires the expert's text; pass --expert and set `env`"
        )
    model = settings.model
    demonstrations = read_demonstrations(paths.expert)
    idle = not model.tiny.pretrain_trajectories
    with Bar(desc="pretrain", unit="step", disable=idle) as bar:

        def show(row: dict, steps: int) -> None:
            bar.total = steps
            bar.set_postfix(loss=f"{row['loss']:.3f}", refresh=False)
            bar.update()

        return build(
            model.tiny,
            texts(demonstrations),
            load(settings.env.name).cut,
            job.seed,
            out,
            lambda folder: pretrain(model, demonstrations, job.seed, folder, show),
        )
