"""Fine-tune the base model on expert trajectories, with loss on action tokens only.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage sft > sft.json
  python -m hgrpo.cli.stage sft --config sft.json --base results/bakeoff/base \\
      --expert results/bakeoff/expert --out results/bakeoff/sft
"""

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder, write_json
from hgrpo.base_model.folder import open_base
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.games.user_path import user_path
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.progress import Bar
from hgrpo.provenance import provenance
from hgrpo.stages.files import BASE, policy_files
from hgrpo.stages.paths import Job, folder, place
from hgrpo.stages.sections import EnvName

if TYPE_CHECKING:
    from hgrpo.learning.imitation import Example
    from hgrpo.policy.policy import Policy
    from hgrpo.study.study import Study

FOLDER = "sft"
JOB: tuple[str, ...] = ()
OUTPUTS = {"log": "train_log.json", "summary": "summary.json"}
# Two cores, because all runs wait for this stage.
RESOURCES = {"mem_mb": 2500, "threads": 2}
USES: tuple[str, ...] = ()
# Minimum time between checkpoints. Saving a tiny model takes as long as several steps.
_SAVE_EVERY_S = 30.0


class Settings(Strict):
    """Settings of the model and of supervised fine-tuning, and the environment's name."""

    env: EnvName
    model: ModelConfig
    sft: SftConfig


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    base: Path = folder("base", "folder of the base stage")
    expert: Path | None = folder("trajectories", "folder of the expert stage", optional=True)
    out: Path = folder("summary", "output folder")
    scratch: Path | None = place("folder for checkpoints (default: beside --out)")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The environment's name, and the study's sections `model` and `sft`."""
    return {
        "env": study.env.model_dump(mode="json", include={"name"}),
        "model": study.model.model_dump(mode="json"),
        "sft": study.config.sft.model_dump(mode="json"),
    }


def inputs(study: "Study", job: Job) -> dict:
    """The base model and, unless `sft.adapter` is set, the demonstrations."""
    imitates = study.config.sft.adapter is None
    return {**BASE, "trajectories": ["expert/trajectories.parquet"] if imitates else []}


def outputs(study: "Study") -> dict[str, str]:
    """`OUTPUTS`, and the SFT policy's files. Their names depend on the model's setting `adapt`."""
    return {**policy_files(study, "adapter", "adapter"), **OUTPUTS}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Fine-tune the base model, or copy the configured adapter."""
    if settings.sft.adapter is not None:
        _take(settings, job, paths)
    elif paths.expert is None:
        raise UserError("--expert is required unless `sft.adapter` is set")
    else:
        _imitate(settings, job, paths)


def _take(settings: Settings, job: Job, paths: Paths) -> None:
    from hgrpo.policy.outside_adapter import adapter_digest, take_adapter, trained_on

    base, env = open_base(paths.base), settings.env.name
    adapter = user_path(settings.sft.adapter, "sft.adapter")
    with atomic_folder(paths.out) as out:
        weights = take_adapter(adapter, settings.model, base, env, out / "adapter")
        summary = {
            "taken_from": settings.sft.adapter,
            "given": adapter_digest(adapter),
            "weights": weights,
            "trained_on": trained_on(base, env),
        } | provenance(job.code)
        _write(out, [], settings, summary)
    print(f"sft: using the existing policy in {settings.sft.adapter} (weights hash {weights})")


def _write(out: Path, rows: list[dict], settings: Settings, summary: dict) -> None:
    log = {"rows": rows, "config": settings.model_dump(mode="json")}
    write_json(out / "train_log.json", log)
    write_json(out / "summary.json", summary)


def _imitate(settings: Settings, job: Job, paths: Paths) -> None:
    from hgrpo.learning.checkpoints import Checkpoints, resume_key
    from hgrpo.learning.imitation import imitate
    from hgrpo.learning.optimisers import sft_optimisers
    from hgrpo.learning.scratch import job_scratch
    from hgrpo.policy.compatible import weights_digest
    from hgrpo.policy.load import load_policy
    from hgrpo.policy.outside_adapter import trained_on
    from hgrpo.policy.precision import autocast_dtype, dtype_name

    model, sft = settings.model, settings.sft
    began = time.perf_counter()
    base = open_base(paths.base)
    policy = load_policy(model, base, seed=sft.seed)
    data = _examples(settings, paths, policy)
    optimisers = sft_optimisers(policy, sft)
    identity = {"settings": settings.model_dump(mode="json"), **asdict(job)}
    resumes = resume_key(identity, base, [paths.expert / "trajectories.parquet"])
    total = max(1, math.ceil(len(data.train) * sft.epochs / sft.batch_trajectories))
    with (
        job_scratch(paths.scratch, paths.out, resumes) as scratch,
        Bar(total=total, desc="sft", unit="step") as bar,
    ):

        def show(row: dict) -> None:
            checked = row["validation_loss"]
            if checked is not None:
                bar.set_postfix(validation=f"{checked:.4f}", refresh=False)
            bar.update()

        checkpoints = Checkpoints(scratch, every_s=_SAVE_EVERY_S)
        rows = imitate(
            policy,
            optimisers,
            data.train,
            data.validation,
            sft,
            show,
            checkpoints=checkpoints,
        )
        summary = {
            "train_trajectories": len(data.train),
            "validation_trajectories": len(data.validation),
            "too_long": data.too_long,
            "steps": len(rows),
            "final_loss": rows[-1]["loss"],
            "validation_loss": rows[-1]["validation_loss"],
            "action_tokens": sum(end - start for each in data.train for start, end in each.spans),
            "train_dtype": dtype_name(autocast_dtype(model, policy.device)),
            "trained_on": trained_on(base, settings.env.name),
        } | provenance(job.code)
        with atomic_folder(paths.out) as out:
            policy.save_adapter(out / "adapter")
            _write(out, rows, settings, summary | {"weights": weights_digest(out / "adapter")})
    too_long = f" ({data.too_long} too long for the model)" if data.too_long else ""
    print(
        f"sft: {len(rows)} steps on {len(data.train)} trajectories{too_long}, validation loss "
        f"{summary['validation_loss']:.4f}, {time.perf_counter() - began:.0f} s"
    )


@dataclass(frozen=True)
class _Data:
    """Training and validation examples, and the number of trajectories that were too long."""

    train: "list[Example]"
    validation: "list[Example]"
    too_long: int


def _examples(settings: Settings, paths: Paths, policy: "Policy") -> _Data:
    """Convert the demonstrations to training and validation examples, split by task.

    Raises:
        UserError: at least half of the trajectories are too long for the model, or the training
            or validation set is empty.
    """
    from hgrpo.learning.imitation import examples, read_demonstrations

    sft = settings.sft
    demonstrations = read_demonstrations(paths.expert)
    # Split by task, so that no task occurs in both training and validation.
    held_out = {
        row["task_id"]
        for row in demonstrations
        if key("sft-validation", sft.seed, row["task_id"]) < sft.validation_share * 2**64
    }
    longest = policy.causal_lm.config.max_position_embeddings

    def chosen(held: bool) -> "tuple[list[Example], int]":
        rows = [row for row in demonstrations if (row["task_id"] in held_out) == held]
        return examples(rows, policy.conversation, longest, whole_text=False)

    (train, long_train), (validation, long_validation) = chosen(False), chosen(True)
    fitting, too_long = len(train) + len(validation), long_train + long_validation
    if too_long and too_long >= fitting:
        raise UserError(
            f"{paths.expert}: {too_long} of {too_long + fitting} trajectories exceed the context "
            f"length of model {settings.model.name} ({longest} tokens); use a model with a longer "
            "context, or an environment with fewer turns or shorter texts"
        )
    if not train or not validation:
        raise UserError(
            f"{paths.expert}: {len(demonstrations)} trajectories are too few for a validation set: "
            f"`sft.validation_share: {sft.validation_share}` leaves {len(train)} for training and "
            f"{len(validation)} for validation; add trajectories or change the share"
        )
    return _Data(train, validation, too_long)
