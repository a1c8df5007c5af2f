"""Evaluate a policy on the validation and test panels; one row per episode.

Example:
  python -m hgrpo.cli.evaluate --config results/bakeoff/config.yaml --method flatGRPO \\
      --seed 11 --round 4 --assets results/bakeoff/assets --base results/bakeoff/base \\
      --policy results/bakeoff/rl/flatGRPO/seed_11/round_4/adapter --out round_4
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import (
    arguments,
    engine_section,
    env_section,
    read_config,
    run,
    section,
)
from hgrpo.config.read import did_you_mean
from hgrpo.envs.base import Task
from hgrpo.envs.kinds import EnvConfig
from hgrpo.envs.make import env_factory
from hgrpo.envs.panels import check_sizes, read_panels
from hgrpo.errors import UserError
from hgrpo.evaluation.evaluator import episode_row, play_panel
from hgrpo.evaluation.settings import EvaluationConfig
from hgrpo.policy.policy import Policy, load_player, load_policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.provenance import provenance
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.engine import RolloutEngine, Sampling
from hgrpo.rollout.make import make_engine

if TYPE_CHECKING:
    from hgrpo.agent.chat import ChatConversation
    from hgrpo.agent.conversation import Conversation


def main() -> None:
    """Parse the arguments and play the panels."""
    parser = arguments(__doc__)
    parser.add_argument("--method", required=True, help="name of the arm, for the rows")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--round", type=int, required=True)
    parser.add_argument("--assets", type=Path, required=True, help="folder of games and panels")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model")
    parser.add_argument("--policy", type=Path, required=True, help="adapter to evaluate")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    config = read_config(args.config)
    env = env_section(config)
    model = section(config, "model", ModelConfig)
    engine_config = engine_section(config)
    evaluation = section(config, "evaluation", EvaluationConfig)
    began = time.perf_counter()
    panels = read_panels(args.assets / "panels.json")
    check_sizes(panels, {"evaluation": evaluation.model_dump()})
    trained = is_trained(config, args.method)
    temperatures = evaluation.temperatures if trained else evaluation.sft_temperatures
    plan = []
    for panel in ("validation", "test"):
        tasks = panels[panel][: getattr(evaluation, f"{panel}_games")]
        plan += [(panel, tasks, temperature) for temperature in temperatures]
    # Before anything is played: a folder that cannot be written would cost the whole evaluation.
    with atomic_folder(args.out) as out:
        # Other engines are checked against the trainer, which takes a trainable policy.
        load = load_player if engine_config.engine.plays_saved_weights else load_policy
        policy = load(model, args.base, args.policy)
        conversation = policy.conversation
        largest = max(len(tasks) for _, tasks, _ in plan)
        engine = make_engine(
            engine_config,
            policy,
            min(evaluation.in_flight, largest),
            Sampling(0.0, evaluation.max_action_tokens),
            conversation.end_id,
        )
        if isinstance(policy, Policy):
            check_sync(engine, policy, ("evaluate", args.seed, args.round))
        frame = _play(engine, conversation, args, env, evaluation, plan)
        success = frame.groupby(["panel", "temperature"])["success"].mean()
        summary = {
            "method": args.method,
            "seed": args.seed,
            "round": args.round,
            "success": {f"{panel} T={t:g}": float(v) for (panel, t), v in success.items()},
            "n_episodes": len(frame),
            "elapsed_s": time.perf_counter() - began,
        } | provenance("evaluate")
        frame.to_parquet(out / "episodes.parquet", compression="zstd", index=False)
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    for name, value in summary["success"].items():
        print(f"{args.method} seed {args.seed} round {args.round} {name}: {value:.3f}")


def _play(
    engine: RolloutEngine,
    conversation: "Conversation | ChatConversation",
    args: argparse.Namespace,
    env: EnvConfig,
    evaluation: EvaluationConfig,
    plan: Sequence[tuple[str, Sequence[Task], float]],
) -> pd.DataFrame:
    """One row per episode of the (panel, tasks, temperature) in `plan`."""
    make_env = env_factory(env, args.assets)
    rows = []
    with tqdm(total=sum(len(tasks) for _, tasks, _ in plan), desc="evaluate", unit="game") as bar:
        for panel, tasks, temperature in plan:
            trajectories = play_panel(
                engine,
                conversation,
                make_env,
                tasks,
                temperature,
                ("evaluate", args.seed, panel),
                env.turn_cap,
                evaluation.max_action_tokens,
                lambda: bar.update(),
            )
            head = {
                "method": args.method,
                "seed": args.seed,
                "round": args.round,
                "panel": panel,
                "temperature": float(temperature),
            }
            rows += [head | episode_row(trajectory) for trajectory in trajectories]
    return pd.DataFrame(rows)


def is_trained(config: Mapping, method: str) -> bool:
    """Whether an arm was trained: by the stage's settings, or by those of the whole study.

    Raises:
        UserError: neither says so.
    """
    if "train" in config:
        return bool(config["train"])
    methods = config.get("methods")
    if not isinstance(methods, Mapping):
        raise UserError("--config: key 'train' is missing")
    if method not in methods:
        raise UserError(f"--method {method}: not in --config{did_you_mean(method, methods)}")
    return bool(methods[method]["train"])


if __name__ == "__main__":
    run(main)
