"""Play one round of reinforcement learning; a killed round resumes after its last finished step.

Example:
  python -m hgrpo.cli.rl_round --config results/bakeoff/rl/flatGRPO/seed_11/round_1/config.yaml \\
      --seed 11 --round 1 --assets results/bakeoff/assets --base results/bakeoff/base \\
      --sft results/bakeoff/sft/adapter --policy results/bakeoff/sft/adapter \\
      --scratch results/bakeoff/scratch/flatGRPO/seed_11/round_1 --out round_1
"""

import argparse
import hashlib
import json
import time
from contextlib import nullcontext
from pathlib import Path

import yaml
from torch.optim import AdamW
from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.base_model.safetensors_file import WEIGHTS, check_checksum
from hgrpo.cli.entry import (
    arguments,
    engine_section,
    env_section,
    read_config,
    run,
    section,
)
from hgrpo.credit.base import Context
from hgrpo.credit.make import make_assigner
from hgrpo.envs.make import env_factory
from hgrpo.envs.panels import read_panels
from hgrpo.errors import TrainingError, UserError
from hgrpo.learning.checkpoint import (
    Checkpoints,
    load_learner_state,
    locked_scratch,
    read_learner_state,
    write_learner_state,
)
from hgrpo.learning.kl import KlController
from hgrpo.learning.ranks import Ranks, become_ranks, joined_ranks
from hgrpo.learning.round import Round
from hgrpo.learning.schedule import task_offset
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.policy import check_adapter, check_policy, load_policy
from hgrpo.policy.precision import autocast_dtype, dtype_name
from hgrpo.policy.settings import ModelConfig
from hgrpo.provenance import provenance
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.make import make_engine
from hgrpo.study.method import MethodConfig
from hgrpo.workflow.code_version import code_version

_TRAINER_STATE = "trainer_state.pt"


def main() -> None:
    """Parse the arguments and play the round."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--round", type=int, required=True, help="number of the round, from 1")
    parser.add_argument("--assets", type=Path, required=True, help="folder of games and panels")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model")
    parser.add_argument("--sft", type=Path, required=True, help="adapter that anchors the KL")
    parser.add_argument("--policy", type=Path, required=True, help="adapter the round starts from")
    parser.add_argument(
        "--fitted", type=Path, help="what the fit stage made of the rounds before, if there is one"
    )
    parser.add_argument(
        "--cache", type=Path, help="folder shared by all jobs of a study, for judges' answers"
    )
    parser.add_argument("--scratch", type=Path, required=True, help="folder for step checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        help="processes that share the round, one a GPU (default 1)",
    )
    args = parser.parse_args()
    if args.processes < 1:
        raise UserError(f"--processes: {args.processes}; one or more were expected")
    become_ranks(args.processes)
    if args.round < 1:
        raise UserError(f"--round: {args.round}; rounds count from 1, round 0 is the SFT policy")
    config = read_config(args.config)
    _check_inputs(config, args)
    ranks = joined_ranks()
    key = _resume_key(config, args)
    # One process holds the round for all of them; each reads its checkpoints.
    held = locked_scratch(args.scratch, key) if ranks.first else nullcontext(args.scratch / key)
    with held as scratch:
        ranks.wait()
        checkpoints = Checkpoints(scratch)
        try:
            _play(config, args, checkpoints, ranks)
        except TrainingError as error:
            kept = checkpoints.finished
            last = (
                f"step {kept}, the last good one, is kept in {scratch}" if kept else "none is kept"
            )
            raise UserError(f"step {kept + 1}: {error}; {last}") from None


def _check_inputs(config: dict, args: argparse.Namespace) -> None:
    """See whether what the round starts from is whole.

    This comes before `_resume_key`: damaged files would change the key, and with it the steps of an
    unfinished round would be given up.
    """
    model = section(config, "model", ModelConfig)
    check_adapter(args.base, lora=False)
    for adapter in (args.sft, args.policy):
        check_policy(model, args.base, adapter)
    if (args.policy / _TRAINER_STATE).is_file():
        read_learner_state(args.policy / _TRAINER_STATE)
    if args.fitted and (args.fitted / WEIGHTS).is_file():
        check_checksum(args.fitted / WEIGHTS)


def _resume_key(config: dict, args: argparse.Namespace) -> str:
    """Changes with anything that would make a resumed round differ from a fresh one."""
    code = code_version("rl_round", section(config, "method", MethodConfig).credit.kind)
    identity = json.dumps([config, code, args.seed, args.round], sort_keys=True)
    digest = hashlib.sha256(identity.encode())
    inputs = [args.assets / "panels.json"]
    for folder in filter(None, (args.base, args.sft, args.policy, args.fitted)):
        inputs += sorted(p for p in folder.iterdir() if p.is_file())
    for path in inputs:
        if not _recorded(path):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _recorded(path: Path) -> bool:
    """Whether these are the weights whose hash the summary beside them holds: gigabytes to read."""
    summary = path.with_name("summary.json")
    if path.name != WEIGHTS or not summary.is_file():
        return False
    try:
        known = json.loads(summary.read_text())
        return "sha256" in known and known["bytes"] == path.stat().st_size
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise UserError(f"{summary}: corrupted ({error})") from None


def _play(config: dict, args: argparse.Namespace, checkpoints: Checkpoints, ranks: Ranks) -> None:
    began = time.perf_counter()
    env, model = env_section(config), section(config, "model", ModelConfig)
    training = section(config, "training", TrainingConfig)
    method = section(config, "method", MethodConfig)
    panel = read_panels(args.assets / "panels.json")["train"]
    policy = load_policy(model, args.base, args.policy)
    policy.load_reference(args.sft)
    optimiser = AdamW(
        [parameter for _, parameter in policy.trainable],
        lr=training.lr,
        betas=training.betas,
        weight_decay=training.weight_decay,
    )
    learner = Learner(
        policy,
        optimiser,
        KlController.start(training.kl),
        training,
        autocast_dtype(model, policy.device),
        ranks,
    )
    carried = args.policy / _TRAINER_STATE
    if carried.is_file():
        load_learner_state(learner, read_learner_state(carried))
    conversation = policy.conversation
    sampling = Sampling(training.temperature, training.max_action_tokens)
    needs = method.credit.declared
    engine = make_engine(
        engine_section(config),
        policy,
        training.in_flight,
        sampling,
        conversation.end_id,
        needs.reads_embeddings,
    )
    make_env = env_factory(env, args.assets)
    collector = Collector(
        engine,
        conversation,
        make_env,
        env.turn_cap,
        training.max_action_tokens,
        needs.reads_situations,
    )
    context = Context(env.name, policy, conversation, collector, args.cache, args.fitted)
    assigner = make_assigner(method.credit, context)
    play = Round(
        args.seed,
        args.round,
        panel,
        method,
        training,
        learner,
        engine,
        collector,
        assigner,
        checkpoints,
    )
    per_step = training.tasks_per_step * training.rollouts_per_task
    total = training.steps_per_round * per_step
    with tqdm(total=total, desc="round", unit="traj", disable=not ranks.first) as bar:

        def show(row: dict) -> None:
            bar.n = (row["step"] + 1) * per_step
            bar.set_postfix(success=f"{row['success_rate']:.2f}", step=row["step"] + 1)

        rows = play.run(show, lambda: bar.update(ranks.size))
    if not ranks.first:
        return
    elapsed = time.perf_counter() - began
    summary = _summary(rows, config, args, learner, elapsed)
    with atomic_folder(args.out) as out:
        policy.save_adapter(out / "adapter")
        write_learner_state(learner, out / "adapter" / _TRAINER_STATE)
        for name in ("turns", "sequences"):
            checkpoints.write_rollouts(name, len(rows), out / f"{name}.parquet")
        log = {"rows": rows, "config": _log_config(config, args), "eval": None}
        (out / "train_log.json").write_text(json.dumps(log, indent=1) + "\n")
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
        snapshot = (
            config
            | {"seed": args.seed, "round": args.round}
            | provenance("rl_round", method.credit.kind)
        )
        (out / "config.yaml").write_text(yaml.safe_dump(snapshot, sort_keys=True))
    print(
        f"{method.name} seed {args.seed} round {args.round}: {len(rows)} steps, success "
        f"{rows[0]['success_rate']:.3f} -> {rows[-1]['success_rate']:.3f}, {elapsed:.0f} s"
    )


def _log_config(config: dict, args: argparse.Namespace) -> dict:
    training = config["training"]
    offset = task_offset(args.round, training["steps_per_round"], training["tasks_per_step"])
    return config | {
        "env_name": config["env"]["name"],
        "K": training["rollouts_per_task"],
        "max_turns": config["env"]["turn_cap"],
        "seed": args.seed,
        "round": args.round,
        "task_id_offset": offset,
    }


def _summary(
    rows: list[dict],
    config: dict,
    args: argparse.Namespace,
    learner: Learner,
    elapsed: float,
) -> dict:
    tenth = max(1, len(rows) // 10)
    counts = (
        "inadmissible",
        "overlong",
        "empty",
        "dead_groups",
        "truncated",
        "context_overflow",
    )
    norms = [row["grad_norm"] for row in rows if row["grad_norm"] is not None]

    def total(name: str) -> int:
        return sum(row[name] for row in rows)

    def mean(part: list[dict]) -> float:
        return sum(row["mean_reward"] for row in part) / len(part)

    return {
        "env_name": config["env"]["name"],
        "method": config["method"]["name"],
        "seed": args.seed,
        "round": args.round,
        "n_steps": len(rows),
        "n_episodes": total("n_groups"),
        "K": config["training"]["rollouts_per_task"],
        "train_dtype": dtype_name(learner.autocast),
        "completed_episodes": total("completed"),
        "total_trajectories": total("n_trajectories"),
        "total_turns": round(sum(row["mean_turns"] * row["n_trajectories"] for row in rows)),
        "total_action_tokens": total("n_action_tokens"),
        "total_forward_tokens": total("n_forward_tokens"),
        "mean_reward_first_10pct": mean(rows[:tenth]),
        "mean_reward_last_10pct": mean(rows[-tenth:]),
        "mean_grad_norm": sum(norms) / len(norms) if norms else None,
        "mean_kl_coef_final": learner.kl.coefficient,
        "counts": {name: total(name) for name in counts},
        "total_elapsed_s": elapsed,
    }


if __name__ == "__main__":
    run(main)
