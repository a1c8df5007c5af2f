"""Evaluate a policy on the validation and test panels, and write one row per episode.

Trained arms are evaluated on the validation panel unless `validate_trained` is false. An untrained
arm has the same policy for all seeds, so it is evaluated only once, as seed 0. All untrained arms
are evaluated with the same random numbers.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage evaluate --method flatGRPO \\
      > evaluate.json
  python -m hgrpo.cli.stage evaluate --config evaluate.json --method flatGRPO --seed 11 --round 4 \\
      --assets results/bakeoff/assets --base results/bakeoff/base \\
      --policy results/bakeoff/rl/flatGRPO/seed_11/round_4/adapter --out round_4
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo import parquet
from hgrpo.atomic import atomic_folder, write_json
from hgrpo.base_model.folder import open_base
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError
from hgrpo.evaluation.settings import STATISTICS, EvaluationConfig
from hgrpo.games.panels import read_panels
from hgrpo.progress import Bar
from hgrpo.provenance import provenance
from hgrpo.stages.files import BASE, PANELS, TASKS, policy_files, policy_folder
from hgrpo.stages.paths import Job, folder
from hgrpo.stages.playing import Playing, env_maker, playing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from hgrpo.agent.chat import ChatConversation
    from hgrpo.agent.conversation import Conversation
    from hgrpo.games.base import Task
    from hgrpo.rollout.engine import RolloutEngine
    from hgrpo.study.study import Study
    from hgrpo.trajectories.trajectory import Trajectory

FOLDER = "eval/{method}/seed_{seed}/round_{round}"
JOB = ("method", "seed", "round")
OUTPUTS = {"episodes": "episodes.parquet", "summary": "summary.json"}
RESOURCES = {"mem_mb": 1500}
USES = ("env", "engine")


class Settings(Playing):
    """Settings of rollouts and evaluation, and whether the arm was trained."""

    evaluation: EvaluationConfig
    train: bool


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    assets: Path = folder("panels", "folder of the assets stage")
    base: Path = folder("base", "folder of the base model")
    policy: Path = folder("policy", "adapter to evaluate")
    out: Path = folder("summary", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """Settings of rollouts and evaluation; settings without effect on the arm are omitted."""
    train = study.methods[method].train
    unread = STATISTICS | {"sft_temperatures" if train else "validate_trained"}
    return {
        **playing(study),
        "evaluation": study.config.evaluation.model_dump(mode="json", exclude=unread),
        "train": train,
    }


def inputs(study: "Study", job: Job) -> dict:
    """The tasks, the base and the policy of the round."""
    policy = policy_folder(job.method, job.seed, job.round)
    return {"panels": PANELS, "tasks": TASKS, **BASE, **policy_files(study, policy)}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Play the panels at every temperature, and write the episodes and a summary."""
    from hgrpo.base_model.digest import any_digest
    from hgrpo.policy.compatible import weights_digest
    from hgrpo.policy.load import load_player, load_policy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.canary import check_sync
    from hgrpo.rollout.engine import Sampling

    began = time.perf_counter()
    evaluation = settings.evaluation
    panels = read_panels(paths.assets / "panels.json")
    for panel, size, _ in plays(settings):
        if size > len(panels[panel]):
            raise UserError(
                f"evaluation.{panel}_games: {size} games requested, but the {panel} panel has "
                f"{len(panels[panel])}"
            )
    plan = [
        (panel, panels[panel][:size], temperature) for panel, size, temperature in plays(settings)
    ]
    # Create the output folder before the evaluation, so that an error is raised early.
    with atomic_folder(paths.out) as out:
        # If the engine may alter the saved weights, `check_sync` requires a trainable policy.
        load_weights = load_player if settings.engine.engine.plays_saved_weights else load_policy
        policy = load_weights(settings.model, open_base(paths.base), paths.policy)
        capacity = min(evaluation.in_flight, max(len(tasks) for _, tasks, _ in plan))
        sampling = Sampling(0.0, evaluation.max_action_tokens)
        engine = settings.engine.make(policy, capacity, sampling)
        if isinstance(policy, Policy):
            check_sync(engine, policy, ("evaluate", job.seed, job.round))
        frame = _play(engine, policy.conversation, settings, job, paths, plan)
        means = frame.groupby(["panel", "temperature"])[["success", "env_return"]].mean()
        success, returns = means["success"], means["env_return"]
        summary = {
            "method": job.method,
            "seed": job.seed,
            "round": job.round,
            "success": {f"{panel} T={t:g}": float(v) for (panel, t), v in success.items()},
            "mean_return": {f"{panel} T={t:g}": float(v) for (panel, t), v in returns.items()},
            "n_episodes": len(frame),
            "elapsed_s": time.perf_counter() - began,
            "base": any_digest(paths.base),
            "policy": weights_digest(paths.policy),
            "settings": settings_digest(settings.model_dump(mode="json")),
        } | provenance(job.code, settings.env.name)
        frame.to_parquet(out / "episodes.parquet", index=False, **parquet.WRITE)
        write_json(out / "summary.json", summary)
    for name, value in summary["success"].items():
        print(f"{job.method} seed {job.seed} round {job.round} {name}: {value:.3f}")


def plays(settings: Settings) -> list[tuple[str, int, float]]:
    """List the arm's evaluations, in order, as (panel, number of games, temperature)."""
    evaluation = settings.evaluation
    temperatures = evaluation.temperatures if settings.train else evaluation.sft_temperatures
    sizes = evaluation.panel_sizes
    if settings.train and not evaluation.validate_trained:
        del sizes["validation"]
    return [(panel, size, each) for panel, size in sizes.items() for each in temperatures]


def _play(
    engine: "RolloutEngine",
    conversation: "Conversation | ChatConversation",
    settings: Settings,
    job: Job,
    paths: Paths,
    plan: "Sequence[tuple[str, Sequence[Task], float]]",
) -> "pd.DataFrame":
    """Play the tasks of each (panel, tasks, temperature) in `plan`; return one row per episode."""
    import pandas as pd

    from hgrpo.rollout.collector import Collector
    from hgrpo.rollout.engine import Sampling

    env, longest = settings.env, settings.evaluation.max_action_tokens
    make_env = env_maker(env, paths.assets)
    rows = []
    with Bar(total=sum(len(tasks) for _, tasks, _ in plan), desc="evaluate", unit="game") as bar:
        for panel, tasks, temperature in plan:
            engine.sampling = Sampling(temperature, longest)
            collector = Collector(engine, conversation, make_env, env.turn_cap, longest)
            stream = ("evaluate", job.seed, panel, temperature)
            groups = collector.collect(tasks, 1, stream, lambda: bar.update())
            if panel == "test" and temperature == 0:
                won = sum(trajectory.success for (trajectory,) in groups)
                # Show this success rate in the monitor before the other evaluations end.
                bar.set_postfix(test=f"{won / len(groups):.3f}")
            head = {"method": job.method, "seed": job.seed, "round": job.round, "panel": panel}
            head["temperature"] = float(temperature)
            rows += [head | _episode(group[0]) for group in groups]
    return pd.DataFrame(rows)


def _episode(trajectory: "Trajectory") -> dict:
    return {
        "task_id": trajectory.task.task_id,
        "content_hash": trajectory.task.content_hash,
        "task_type": trajectory.task.task_type,
        "success": trajectory.success,
        "env_return": trajectory.env_return,
        "final_progress": sum(turn.progress for turn in trajectory.turns),
        "n_turns": len(trajectory.turns),
        "n_inadmissible": trajectory.inadmissible,
        "n_overlong": trajectory.overlong,
        "n_empty": trajectory.empty,
        "truncated": trajectory.truncated,
        "n_action_tokens": trajectory.action_tokens,
    }
