"""Measure the ground-truth advantage of every turn in rollouts of a policy.

The policy is the reference arm's policy after a round, with the study's first seed; round 0 is the
SFT policy. The policy plays whole groups on games of the training panel, with a separate random
stream. The values V before and after each turn are then estimated from many continuations. A turn's
ground-truth advantage is V(after) - V(before). A killed job resumes after its last finished group.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff_plus.yaml --stage truth_round > truth.json
  python -m hgrpo.cli.stage truth_round --config truth.json --seed 11 --round 0 \\
      --assets results/bakeoff_plus/assets --base results/bakeoff_plus/base \\
      --policy results/bakeoff_plus/sft/adapter --out results/bakeoff_plus/truth/round_0
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgrpo.atomic import atomic_folder, write_json
from hgrpo.base_model.folder import open_base
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.games.panels import read_panels
from hgrpo.learning.settings import PLAY
from hgrpo.progress import Bar
from hgrpo.stages.files import BASE, PANELS, TASKS, policy_files, policy_folder, reference_of
from hgrpo.stages.paths import Job, folder, place
from hgrpo.stages.playing import Playing, collector, playing

if TYPE_CHECKING:
    from hgrpo.evaluation.truth.measure import Measurement
    from hgrpo.study.study import Study
    from hgrpo.trajectories.played_groups import PlayedGroup

FOLDER = "truth/round_{round}"
JOB = ("seed", "round")
OUTPUTS = {
    "truth": "truth.parquet",
    "turns": "turns.parquet",
    "sequences": "sequences.parquet",
    "summary": "summary.json",
}
RESOURCES = {"mem_mb": 2000, "runtime": 240}
USES = ("env", "engine")


class Settings(Playing):
    """Settings of rollouts and of the ground truth."""

    play: dict[str, Any]
    truth: TruthConfig


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    assets: Path = folder("panels", "folder of the assets stage")
    base: Path = folder("base", "folder of the base stage")
    policy: Path | None = folder("policy", "adapter of the policy to measure", optional=True)
    out: Path = folder("summary", "output folder")
    scratch: Path | None = place("folder for finished groups (default: beside --out)")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The rollout settings of the reference arm, and the study's section `truth`."""
    training = study.training.get(study.config.reference, study.config.training)
    truth = study.config.truth or TruthConfig()
    return {
        **playing(study),
        "play": training.model_dump(mode="json", include=PLAY | {"rollouts_per_task"}),
        "truth": truth.model_dump(mode="json", exclude={"after_rounds"}),
    }


def inputs(study: "Study", job: Job) -> dict:
    """Tasks, base model, and the policy to measure.

    Raises:
        UserError: the reference is not among the methods.
    """
    policy = policy_folder(reference_of(study), study.config.seeds[0], job.round)
    return {"panels": PANELS, "tasks": TASKS, **BASE, **policy_files(study, policy)}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Play the rollouts, measure all groups that are not yet measured, and write the tables.

    Raises:
        UserError: `--policy` is missing, a file is damaged, or the panel has too few games.
    """
    from hgrpo.evaluation.truth.measure import Measurement
    from hgrpo.learning.checkpoints import files_in, resume_key
    from hgrpo.learning.scratch import job_scratch
    from hgrpo.policy.compatible import check_adapter, check_policy
    from hgrpo.policy.load import load_policy
    from hgrpo.policy.score_sketch import ScoreSketcher

    if paths.policy is None:
        raise UserError(
            "--policy is required, because ground truth is estimated from continuations"
        )
    began = time.perf_counter()
    base, panels = open_base(paths.base), paths.assets / "panels.json"
    check_adapter(base, lora=False)
    check_policy(settings.model, base, paths.policy)
    identity = {"settings": settings.model_dump(mode="json"), **asdict(job)}
    key = resume_key(identity, base, [panels, *files_in(paths.policy)])
    with job_scratch(paths.scratch, paths.out, key) as scratch:
        policy = load_policy(settings.model, base, paths.policy)
        measurement = Measurement(
            settings.truth,
            settings.play["rollouts_per_task"],
            job.seed,
            job.round,
            collector(settings, settings.play, policy, paths.assets),
            ScoreSketcher(policy, settings.truth.sketch, settings.play["temperature"]),
            scratch,
        )
        groups = _play(measurement, panels)
        _measure(measurement, groups)
        with atomic_folder(paths.out) as out:
            counts = measurement.write(groups, out)
            summary = _summary(settings, job, paths, groups, counts, out)
            write_json(out / "summary.json", summary)
    print(
        f"round {job.round} ground truth: {summary['turns']} turns in {summary['trajectories']} "
        f"trajectories, {summary['continuations']} continuations, reliability "
        f"{summary['reliability']:.2f}, {time.perf_counter() - began:.0f} s"
    )


def _play(measurement: "Measurement", panels: Path) -> list["PlayedGroup"]:
    config = measurement.config
    with Bar(total=config.groups * measurement.size, desc="rollouts", unit="traj") as bar:
        return measurement.rollouts(read_panels(panels)["train"], bar.update)


def _measure(measurement: "Measurement", groups: list["PlayedGroup"]) -> None:
    each = measurement.config.continuations
    sizes = [each * sum(len(t.turns) for t in group.trajectories) for group in groups]
    with Bar(total=sum(sizes), desc="truth", unit="episode") as bar:
        for group, size in zip(groups, sizes, strict=True):
            if measurement.finished(group):
                bar.initial += size
            else:
                measurement.measure(group)
            bar.update(size)


def _summary(
    settings: Settings,
    job: Job,
    paths: Paths,
    groups: list["PlayedGroup"],
    counts: dict[str, float],
    out: Path,
) -> dict:
    from hgrpo.base_model.digest import any_digest
    from hgrpo.evaluation.truth.table import quality, read_truth
    from hgrpo.policy.compatible import weights_digest

    trajectories = [trajectory for group in groups for trajectory in group.trajectories]
    config = settings.model_dump(mode="json")
    return {
        "seed": job.seed,
        "round": job.round,
        "groups": len(groups),
        "trajectories": len(trajectories),
        "mean_return": sum(t.env_return for t in trajectories) / len(trajectories),
        **quality(read_truth(out, groups)),
        **counts,
        "settings": settings_digest(config),
        "code": job.code,
        "parents": {"base": any_digest(paths.base), "policy": weights_digest(paths.policy)},
        "truth": {key: value for key, value in config["truth"].items() if key != "after_rounds"},
        "play": config["play"],
    }
