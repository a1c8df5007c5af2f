"""Measure the gradient of each component of the loss: task, KL and entropy.

The policy plays groups on the panel `analysis`. The groups are split into buckets by the standard
deviation of their returns, once before and once after the rollout filter. For each bucket and loss
component, the stage measures the norm, noise and direction of the gradient. The policy is not
updated. An untrained critic is first warmed up, as in training.

Example:
  python -m hgrpo.cli.config configs/studies/sokoban_gradients.yaml --stage gradients_round \\
      --method PPO > gradients.json
  python -m hgrpo.cli.stage gradients_round --config gradients.json --seed 11 --round 1 \\
      --assets results/sokoban_gradients/assets --base results/sokoban_gradients/base \\
      --sft results/sokoban_gradients/sft/adapter \\
      --policy results/sokoban_gradients/rl/PPO/seed_11/round_1/adapter --out gradients
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_folder, write_json
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import TrainingError, UserError
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.games.panels import ANALYSIS, read_panels
from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.progress import Bar
from hgrpo.stages import rl_round
from hgrpo.stages.files import policy_files, policy_folder
from hgrpo.stages.paths import Job, folder, place

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from hgrpo.evaluation.gradients.bucket_statistics import GroupProducts
    from hgrpo.evaluation.gradients.table import Pass
    from hgrpo.learning.gradients.played import Prepared
    from hgrpo.learning.round import Round
    from hgrpo.learning.set_up import RoundInputs
    from hgrpo.study.study import Study

FOLDER = "gradients/{method}/seed_{seed}/round_{round}"
JOB = ("seed", "round")
OUTPUTS = {"buckets": "buckets.csv", "groups": "groups.csv", "summary": "summary.json"}
# Keys of the section `gradients` that only select policies and do not affect the measurement.
_NOT_READ = {"after_rounds", "with_validation"}
RESOURCES = {"mem_mb": 4000, "runtime": 240}
USES = ("env", "engine", "credit")


class Settings(rl_round.Settings):
    """Settings of rollouts, training and measurement."""

    gradients: GradientsConfig


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    assets: Path = folder("panels", "folder of the assets stage")
    base: Path = folder("base", "folder of the base stage")
    sft: Path = folder("sft", "SFT adapter, the reference of the KL penalty")
    policy: Path = folder("policy", "adapter of the policy to measure")
    out: Path = folder("summary", "output folder")
    fitted: Path | None = folder("fitted", "credit fit after the round", optional=True)
    cache: Path | None = place("cache of judge answers, shared by all jobs of a study")
    scratch: Path | None = place("scratch folder for the critic's warm-up (default: beside --out)")


def from_study(study: "Study", method: str | None = None) -> dict:
    """Settings of rollouts, training and measurement."""
    gradients = study.config.gradients or GradientsConfig()
    return {
        **rl_round.from_study(study, method),
        "gradients": gradients.model_dump(mode="json", exclude=_NOT_READ),
    }


def inputs(study: "Study", job: Job) -> dict:
    """The inputs of a training round that starts from this policy."""
    read = rl_round.inputs(study, Job(job.method, job.seed, job.round + 1))
    policy = policy_folder(job.method, job.seed, job.round)
    home = policy.removesuffix("/adapter")
    return {
        **read,
        **policy_files(study, policy),
        "state": f"{policy}/{TRAINER_STATE}" if job.round else [],
        "critic": f"{home}/{CRITIC}" if job.round else [],
        "evaluations": [],
    }


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Play the groups, measure the gradients, and write the tables.

    Raises:
        UserError: the policy's critic is missing, a file is damaged, the panel `analysis` has too
            few tasks, or the critic's warm-up fails.
    """
    from hgrpo.evaluation.gradients.table import bucket_table
    from hgrpo.learning.gradients.played import analysed_tasks, play, prepare
    from hgrpo.learning.set_up import check_inputs, round_inputs

    began = time.perf_counter()
    config = settings.gradients
    inputs = round_inputs(
        settings.method,
        assets=paths.assets,
        base=paths.base,
        sft=paths.sft,
        policy=paths.policy,
        fitted=paths.fitted,
        cache=paths.cache,
    )
    check_inputs(settings.model, inputs)
    if job.round and settings.method.uses_critic and inputs.critic is None:
        raise UserError(
            f"{paths.policy / TRAINER_STATE}: the file is missing, so {settings.method.name} has "
            f"no critic after round {job.round}"
        )
    panel = read_panels(inputs.panels).get(ANALYSIS, [])
    if len(panel) < config.groups:
        raise UserError(
            f"{inputs.panels}: gradients.groups: {config.groups} tasks requested, but the panel "
            f"{ANALYSIS} has {len(panel)}"
        )
    after = _set_up(settings, job, paths, inputs)
    tasks = analysed_tasks(panel, config.groups, job.seed)
    with Bar(total=len(tasks) * config.rollouts, desc="rollouts", unit="traj") as bar:
        played = play(after, tasks, config.rollouts, bar.update)
    prepared = prepare(after, played)
    measured = _measure(after, prepared, config)
    whitening = prepared.shift, prepared.scale
    table, places = bucket_table(measured, prepared.deviations, config, *whitening)
    groups = _groups(prepared, [task.task_id for task in tasks], places)
    seconds = time.perf_counter() - began
    with atomic_folder(paths.out) as out:
        table.to_csv(out / "buckets.csv", index=False)
        groups.to_csv(out / "groups.csv", index=False)
        summary = _summary(settings, job, paths, prepared, after) | {"elapsed_s": seconds}
        write_json(out / "summary.json", summary)
    print(
        f"{settings.method.name} seed {job.seed}, gradients after round {job.round}: "
        f"{len(prepared.groups)} groups, {seconds:.0f} s"
    )


def settings_read(settings: Settings) -> dict:
    """The settings as plain JSON types; settings that do not affect this stage are omitted."""
    return settings.model_dump(mode="json", exclude={"gradients": _NOT_READ})


def _set_up(settings: Settings, job: Job, paths: Paths, inputs: "RoundInputs") -> "Round":
    """Set up a round that starts from the policy. If its critic is untrained, warm it up."""
    from hgrpo.learning.checkpoints import Checkpoints, resume_key
    from hgrpo.learning.round import RoundId
    from hgrpo.learning.scratch import job_scratch
    from hgrpo.learning.set_up import RoundSettings, set_up

    warm_up = settings.training.critic.warmup_steps
    cold = settings.method.uses_critic and inputs.critic is None
    training = settings.training
    if cold:
        training = training.model_copy(update={"steps_per_round": warm_up})
    sections = RoundSettings(settings.env, settings.model, settings.engine, training)
    id = RoundId(settings.method, job.seed, job.round + 1)
    identity = {"settings": settings_read(settings), **asdict(job)}
    key = resume_key(identity, inputs.base, inputs.files())
    with job_scratch(paths.scratch, paths.out, key) as scratch:
        after = set_up(id, sections, inputs, Checkpoints(scratch))
        if cold:
            total = warm_up * training.tasks_per_step * training.rollouts_per_task
            with Bar(total=total, desc="warm-up", unit="traj") as bar:
                try:
                    after.run(lambda row: None, bar.update)
                except TrainingError as error:
                    raise UserError(f"the critic's warm-up: {error}") from None
    return after


def _measure(after: "Round", prepared: "Prepared", config: GradientsConfig) -> dict[str, "Pass"]:
    """Inner products between the gradients of groups, before and after the rollout filter.

    If the filter only keeps or drops whole groups, the gradients before the filter are reused.
    """
    import numpy as np

    from hgrpo.evaluation.gradients.table import PASSES, Pass
    from hgrpo.learning.gradients.components import COMPONENTS

    masks = prepared.chosen.trajectories
    used = np.flatnonzero([mask.any() for mask in masks])
    parts = [
        [sequence for sequence, use in zip(prepared.groups[i], masks[i], strict=True) if use]
        for i in used
    ]
    first = _products(after, prepared.groups, config, "gradients")
    if all(mask.all() or not mask.any() for mask in masks):
        second = first.of(used)
    else:
        second = _products(after, parts, config, "gradients after the filter")
    weights = prepared.chosen.weights[used]
    # The filter's weights multiply the advantages. The KL and entropy terms are not weighted.
    of_the_task = np.isin(COMPONENTS, ("task", "score"))
    every = np.arange(len(prepared.groups))
    passes = (
        Pass(every, first, *_counts(prepared.groups)),
        Pass(used, second.weighted(weights, of_the_task), *_counts(parts)),
    )
    return dict(zip(PASSES, passes, strict=True))


def _counts(groups: list) -> tuple["np.ndarray", "np.ndarray"]:
    import numpy as np

    tokens = [sum(sequence.sampled for sequence in group) for group in groups]
    return np.array([len(group) for group in groups], int), np.array(tokens, int)


def _products(after: "Round", groups: list, config: GradientsConfig, title: str) -> "GroupProducts":
    from hgrpo.evaluation.gradients.bucket_statistics import GroupProducts
    from hgrpo.learning.gradients.components import Measuring, group_gradients, group_products
    from hgrpo.policy.score_sketch import CountSketch

    learner = after.learner
    length = sum(parameter.numel() for _, parameter in learner.policy.trainable)
    sketch = config.sketch
    project = CountSketch(length, sketch, learner.policy.device, "gradients") if sketch else None
    how = Measuring(learner.training, config.kl_form, learner.autocast, project)
    with Bar(groups, desc=title, unit="group") as bar:
        gradients = (group_gradients(learner.policy, group, how) for group in bar)
        return GroupProducts(*group_products(gradients, len(groups)))


def _groups(
    prepared: "Prepared", tasks: list[str], places: dict[str, dict[int, str]]
) -> "pd.DataFrame":
    import pandas as pd

    from hgrpo.evaluation.gradients.table import PASSES

    groups = pd.DataFrame({"task": tasks, "deviation": prepared.deviations})
    groups["trajectories"] = [len(group) for group in prepared.groups]
    groups["kept"] = [int(mask.sum()) for mask in prepared.chosen.trajectories]
    for name in PASSES:
        groups[f"{name}_bucket"] = [places.get(name, {}).get(i, "") for i in groups.index]
    return groups


def _summary(
    settings: Settings, job: Job, paths: Paths, prepared: "Prepared", after: "Round"
) -> dict:
    from hgrpo.base_model.digest import any_digest
    from hgrpo.policy.compatible import weights_digest

    config = settings_read(settings)
    training = settings.training
    return {
        "method": settings.method.name,
        "seed": job.seed,
        "round": job.round,
        "steps": job.round * training.steps_per_round,
        "warmed_up_steps": len(after.rows),
        "groups": len(prepared.groups),
        "kept_groups": sum(bool(mask.any()) for mask in prepared.chosen.trajectories),
        "kept_trajectories": int(prepared.chosen.flat.sum()),
        "deviation": float(prepared.deviations.mean()),
        "advantage_shift": prepared.shift,
        "advantage_scale": prepared.scale,
        "settings": settings_digest(config),
        "code": job.code,
        "parents": {
            "base": any_digest(paths.base),
            "sft": weights_digest(paths.sft),
            "policy": weights_digest(paths.policy),
        },
        "gradients": config["gradients"],
    }
