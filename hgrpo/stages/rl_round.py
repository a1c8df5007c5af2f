"""Run one round of RL, in which each step collects rollouts, assigns credit and updates the policy.

A round that was killed resumes after its last finished step.

Example:
  python -m hgrpo.cli.stage rl_round --seed 11 --round 1 \\
      --config results/bakeoff/rl/flatGRPO/seed_11/round_1/config.yaml \\
      --assets results/bakeoff/assets --base results/bakeoff/base \\
      --sft results/bakeoff/sft/adapter --policy results/bakeoff/sft/adapter \\
      --scratch results/bakeoff/scratch/flatGRPO/seed_11/round_1 --out round_1
"""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hgrpo.atomic import atomic_folder
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import TrainingError, UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.learning.settings import TrainingConfig
from hgrpo.progress import Bar, print_caution
from hgrpo.provenance import provenance
from hgrpo.stages.files import (
    BASE,
    PANELS,
    SFT_ADAPTER,
    TASKS,
    fitted_files,
    policy_files,
    policy_folder,
    round_folder,
)
from hgrpo.stages.paths import Job, file, folder, number, place
from hgrpo.stages.playing import Playing, playing

if TYPE_CHECKING:
    from hgrpo.learning.checkpoints import Checkpoints
    from hgrpo.learning.ranks import Ranks
    from hgrpo.learning.set_up import RoundInputs
    from hgrpo.study.study import Study

FOLDER = "rl/{method}/seed_{seed}/round_{round}"
JOB = ("seed", "round")
OUTPUTS = {
    "state": f"adapter/{TRAINER_STATE}",
    "critic": CRITIC,
    "turns": "turns.parquet",
    "sequences": "sequences.parquet",
    "log": "train_log.json",
    "summary": "summary.json",
    "config": "config.yaml",
}
RESOURCES = {"mem_mb": 1700}
USES = ("env", "engine", "credit", "rule")


class Settings(Playing):
    """Settings of rollouts, training and credit."""

    training: TrainingConfig
    method: MethodConfig


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    assets: Path = folder("panels", "folder of the assets stage")
    base: Path = folder("base", "folder of the base stage")
    sft: Path = folder("sft", "SFT adapter, the reference of the KL penalty")
    policy: Path = folder("policy", "adapter at the start of the round")
    out: Path = folder("summary", "output folder")
    fitted: Path | None = folder("fitted", "credit fit after the previous round", optional=True)
    evaluations: list[Path] = file(
        "evaluations",
        "evaluation summaries of the earlier rounds, in order, for stopping rules",
        optional=True,
        many=True,
    )
    cache: Path | None = place("cache of judge answers, shared by all jobs of a study")
    scratch: Path | None = place("folder for step checkpoints (default: beside --out)")
    processes: int = number("number of processes of the round, one per GPU (default: 1)", 1)


def from_study(study: "Study", method: str | None = None) -> dict:
    """Settings of rollouts and training, and the method's settings except its label."""
    return {
        **playing(study),
        "training": study.training[method].model_dump(mode="json"),
        "method": study.methods[method].model_dump(mode="json", exclude={"label", "training"}),
    }


def inputs(study: "Study", job: Job) -> dict:
    """Tasks, models, training state before the round, credit fit, and earlier evaluations."""
    carries = study.training[job.method].carry_policy and job.round > 1
    before = policy_folder(job.method, job.seed, job.round - 1 if carries else 0)
    return {
        "panels": PANELS,
        "tasks": TASKS,
        **BASE,
        **policy_files(study, SFT_ADAPTER, "sft"),
        **policy_files(study, before),
        "state": f"{before}/{TRAINER_STATE}" if carries else [],
        "critic": f"{before.removesuffix('/adapter')}/{CRITIC}" if carries else [],
        **fitted_files(study, job.method, job.seed, job.round),
        "evaluations": [
            f"{round_folder('eval', job.method, job.seed, before)}/summary.json"
            for before in range(1, job.round)
            if study.training[job.method].stops.low_validation
        ],
    }


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and the policy's files. Their names depend on the model's setting `adapt`."""
    return {**policy_files(study, "adapter", "adapter"), **OUTPUTS}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Run or resume the round, and write its results.

    Raises:
        UserError: an option is out of range, a file is damaged, or training fails. The checkpoint
            of the last finished step is kept.
    """
    from hgrpo.learning.checkpoints import Checkpoints, resume_key
    from hgrpo.learning.ranks import become_ranks, joined_ranks
    from hgrpo.learning.scratch import job_scratch, scratch_root
    from hgrpo.learning.set_up import check_inputs, round_inputs

    if paths.processes < 1:
        raise UserError(f"--processes: expected at least 1, got {paths.processes}")
    become_ranks(paths.processes)
    if job.round < 1:
        raise UserError(f"--round: expected at least 1, got {job.round}; round 0 is the SFT policy")
    inputs = round_inputs(
        settings.method,
        assets=paths.assets,
        base=paths.base,
        sft=paths.sft,
        policy=paths.policy,
        fitted=paths.fitted,
        cache=paths.cache,
        evaluations=paths.evaluations,
    )
    check_inputs(settings.model, inputs)
    ranks = joined_ranks()
    identity = {"settings": settings.model_dump(mode="json"), **asdict(job)}
    key = resume_key(identity, inputs.base, inputs.files())
    # Only the first process locks the scratch folder. All processes read the checkpoints in it.
    locked = job_scratch(paths.scratch, paths.out, key)
    shared = nullcontext(scratch_root(paths.scratch, paths.out) / key)
    with locked if ranks.first else shared as scratch:
        ranks.wait()
        checkpoints = Checkpoints(scratch)
        try:
            _play(settings, job, paths, inputs, checkpoints, ranks)
        except TrainingError as error:
            finished = checkpoints.finished
            last = "no checkpoint was written"
            if finished:
                last = f"the last finished step, {finished}, is kept in {scratch}"
            raise UserError(f"step {finished + 1}: {error}; {last}") from None


def _play(
    settings: Settings,
    job: Job,
    paths: Paths,
    inputs: "RoundInputs",
    checkpoints: "Checkpoints",
    ranks: "Ranks",
) -> None:
    from hgrpo.base_model.digest import any_digest
    from hgrpo.evaluation.cautions import dead_caution
    from hgrpo.learning.round import RoundId
    from hgrpo.learning.round_outputs import credit_caution, write_round
    from hgrpo.learning.set_up import RoundSettings, set_up
    from hgrpo.policy.compatible import weights_digest

    began = time.perf_counter()
    method, training = settings.method, settings.training
    sections = RoundSettings(settings.env, settings.model, settings.engine, training)
    played = set_up(RoundId(method, job.seed, job.round), sections, inputs, checkpoints, ranks)
    per_step = training.tasks_per_step * training.rollouts_per_task
    total = training.steps_per_round * per_step
    with Bar(total=total, desc="round", unit="traj", disable=not ranks.first) as bar:

        def show(row: dict) -> None:
            bar.n = sum(done["n_trajectories"] for done in played.rows)
            bar.total = bar.n + (training.steps_per_round - len(played.rows)) * per_step
            bar.set_postfix(_newest(row))

        def advance() -> None:
            # With dynamic sampling, a step may play more than `per_step` trajectories.
            bar.total = max(bar.total, bar.n + ranks.size)
            bar.update(ranks.size)

        rows = played.run(show, advance)
    if not ranks.first:
        return
    elapsed = time.perf_counter() - began
    config = settings.model_dump(mode="json")
    origin = {
        "settings": settings_digest(config),
        "code": job.code,
        "parents": {
            "base": any_digest(paths.base),
            "sft": weights_digest(paths.sft),
            "policy": weights_digest(paths.policy),
        },
    }
    with atomic_folder(paths.out) as out:
        write_round(played, config, origin, out)
        of = {"seed": job.seed, "round": job.round}
        snapshot = config | of | provenance(job.code, settings.env.name)
        (out / "config.yaml").write_text(yaml.safe_dump(snapshot, sort_keys=True), encoding="utf-8")
    stop = played.learner.stop
    text = f"{method.name} seed {job.seed} round {job.round}: {len(rows)} steps"
    if rows:
        text += f", success {rows[0]['success_rate']:.3f} -> {rows[-1]['success_rate']:.3f}"
    if stop.over:
        text += f"; {stop.status} by {stop.rule} in round {stop.round}"
    of_run = f"{method.name} seed {job.seed}"
    idle = credit_caution(played)
    cautions = [f"{of_run} round {job.round}: {idle}"] if idle else []
    for caution in filter(None, [*cautions, dead_caution(of_run, job.round, rows)]):
        print_caution(caution)
    print(f"{text}, {elapsed:.0f} s")


def _newest(row: Mapping[str, float]) -> dict[str, str]:
    kl = row.get("observed_kl")
    return {
        "step": str(row["step"] + 1),
        "success": f"{row['success_rate']:.2f}",
        "reward": f"{row['mean_reward']:.3f}",
        **({} if kl is None else {"KL": f"{kl:.4f}"}),
        "dead": f"{row['dead_groups']}/{row['n_groups']}",
    }
