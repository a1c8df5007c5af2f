"""Play one round of reinforcement learning; a killed round resumes after its last finished step.

Example:
  python -m hgrpo.cli.rl_round --config results/bakeoff/rl/flatGRPO/seed_11/round_1/config.yaml \\
      --seed 11 --round 1 --assets results/bakeoff/assets --base results/bakeoff/base \\
      --sft results/bakeoff/sft/adapter --policy results/bakeoff/sft/adapter \\
      --scratch results/bakeoff/scratch/flatGRPO/seed_11/round_1 --out round_1
"""

import argparse
import time
from contextlib import nullcontext
from pathlib import Path

import yaml
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
from hgrpo.errors import TrainingError, UserError
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.ranks import Ranks, become_ranks, joined_ranks
from hgrpo.learning.round import RoundId
from hgrpo.learning.round_outputs import write_round
from hgrpo.learning.scratch import locked_scratch, resume_key
from hgrpo.learning.set_up import RoundInputs, RoundSettings, check_inputs, set_up
from hgrpo.learning.settings import TrainingConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.provenance import provenance
from hgrpo.study.method import MethodConfig
from hgrpo.workflow.code_version import code_version


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
    inputs = RoundInputs(args.assets, args.base, args.sft, args.policy, args.fitted, args.cache)
    check_inputs(section(config, "model", ModelConfig), inputs)
    ranks = joined_ranks()
    method = section(config, "method", MethodConfig)
    code = code_version("rl_round", method.credit.kind)
    identity = {"config": config, "code": code, "seed": args.seed, "round": args.round}
    key = resume_key(identity, inputs.files())
    # One process holds the round for all of them; each reads its checkpoints.
    held = locked_scratch(args.scratch, key) if ranks.first else nullcontext(args.scratch / key)
    with held as scratch:
        ranks.wait()
        checkpoints = Checkpoints(scratch)
        try:
            _play(config, args, inputs, checkpoints, ranks)
        except TrainingError as error:
            kept = checkpoints.finished
            last = (
                f"step {kept}, the last good one, is kept in {scratch}" if kept else "none is kept"
            )
            raise UserError(f"step {kept + 1}: {error}; {last}") from None


def _play(
    config: dict,
    args: argparse.Namespace,
    inputs: RoundInputs,
    checkpoints: Checkpoints,
    ranks: Ranks,
) -> None:
    began = time.perf_counter()
    settings = RoundSettings(
        env_section(config),
        section(config, "model", ModelConfig),
        engine_section(config),
        section(config, "training", TrainingConfig),
    )
    method = section(config, "method", MethodConfig)
    played = set_up(RoundId(method, args.seed, args.round), settings, inputs, checkpoints, ranks)
    training = settings.training
    per_step = training.tasks_per_step * training.rollouts_per_task
    total = training.steps_per_round * per_step
    with tqdm(total=total, desc="round", unit="traj", disable=not ranks.first) as bar:

        def show(row: dict) -> None:
            bar.n = (row["step"] + 1) * per_step
            bar.set_postfix(success=f"{row['success_rate']:.2f}", step=row["step"] + 1)

        rows = played.run(show, lambda: bar.update(ranks.size))
    if not ranks.first:
        return
    elapsed = time.perf_counter() - began
    with atomic_folder(args.out) as out:
        write_round(played, config, elapsed, out)
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


if __name__ == "__main__":
    run(main)
