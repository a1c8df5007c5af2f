"""Fine-tune the base on expert trajectories: loss on action tokens, one sequence a trajectory.

Example:
  python -m hgrpo.cli.sft --config results/bakeoff/config.yaml --base results/bakeoff/base \\
      --expert results/bakeoff/expert --out results/bakeoff/sft
"""

import json
import time
from contextlib import nullcontext
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run, section
from hgrpo.errors import UserError
from hgrpo.learning.checkpoints import SHORT_STEPS_S, Checkpoints
from hgrpo.learning.demonstrations import examples, read_demonstrations
from hgrpo.learning.imitation import ImitationSettings, imitate
from hgrpo.learning.optimisers import sft_optimisers
from hgrpo.learning.scratch import locked_scratch, resume_key
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.policy import load_policy
from hgrpo.policy.precision import autocast_dtype, dtype_name
from hgrpo.policy.settings import ModelConfig
from hgrpo.provenance import provenance
from hgrpo.streams import key
from hgrpo.workflow.code_version import code_version


def main() -> None:
    """Parse the arguments and fine-tune."""
    parser = arguments(__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model")
    parser.add_argument("--expert", type=Path, required=True, help="folder of the expert stage")
    parser.add_argument(
        "--scratch", type=Path, help="folder for checkpoints; without it a killed run starts anew"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    config = read_config(args.config)
    model, sft = section(config, "model", ModelConfig), section(config, "sft", SftConfig)
    began = time.perf_counter()
    policy = load_policy(model, args.base, seed=sft.seed)
    demonstrations = read_demonstrations(args.expert)
    # Whole tasks are held out: the same game under two random streams is not a held-out game.
    held_out = {
        row["task_id"]
        for row in demonstrations
        if key("sft-validation", sft.seed, row["task_id"]) < sft.validation_share * 2**64
    }
    conversation = policy.conversation
    longest = policy.causal_lm.config.max_position_embeddings
    train, long_train = examples(
        [r for r in demonstrations if r["task_id"] not in held_out],
        conversation,
        longest,
        False,
    )
    validation, long_validation = examples(
        [r for r in demonstrations if r["task_id"] in held_out],
        conversation,
        longest,
        False,
    )
    too_long = long_train + long_validation
    if too_long and too_long >= len(train) + len(validation):
        raise UserError(
            f"{args.expert}: {too_long} of {too_long + len(train) + len(validation)} trajectories "
            f"are longer than the {longest} tokens that model {model.name} reads; take a model "
            "that reads more, or an environment with fewer turns or shorter texts"
        )
    if not train or not validation:
        raise UserError(
            f"{args.expert}: {len(demonstrations)} trajectories are too few to hold any out"
        )
    settings = ImitationSettings(
        sft.epochs,
        sft.batch_trajectories,
        sft.warmup_steps,
        sft.microbatch_tokens,
        sft.seed,
        autocast_dtype(model, policy.device),
    )
    matrix_lr = sft.matrix_lr if model.adapt == "full" else None
    optimisers = sft_optimisers(
        policy.trainable, matrix_lr, sft.lr, sft.weight_decay, settings.autocast
    )
    held = nullcontext(None)
    if args.scratch:
        files = [args.expert / "trajectories.parquet"]
        files += sorted(path for path in args.base.iterdir() if path.is_file())
        identity = {"config": config, "code": code_version("sft")}
        held = locked_scratch(args.scratch, resume_key(identity, files))
    with held as scratch:
        checkpoints = Checkpoints(scratch, SHORT_STEPS_S) if scratch else None
        total = max(1, -int(-len(train) * sft.epochs // sft.batch_trajectories))
        with tqdm(total=total, desc="sft", unit="step") as bar:

            def show(row: dict) -> None:
                checked = row["validation_loss"]
                if checked is not None:
                    bar.set_postfix(validation=f"{checked:.4f}", refresh=False)
                bar.update()

            rows = imitate(
                policy, optimisers, train, validation, settings, show, checkpoints=checkpoints
            )
        summary = {
            "train_trajectories": len(train),
            "validation_trajectories": len(validation),
            "too_long": too_long,
            "steps": len(rows),
            "final_loss": rows[-1]["loss"],
            "validation_loss": rows[-1]["validation_loss"],
            "action_tokens": sum(e - s for example in train for s, e in example.spans),
            "elapsed_s": time.perf_counter() - began,
            "train_dtype": dtype_name(settings.autocast),
        } | provenance("sft")
        with atomic_folder(args.out) as out:
            policy.save_adapter(out / "adapter")
            log = {"rows": rows, "config": config}
            (out / "train_log.json").write_text(json.dumps(log, indent=1) + "\n")
            (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
        print(
            f"sft: {len(rows)} steps on {len(train)} trajectories"
            + (f" ({too_long} are too long for the model)" if too_long else "")
            + f", validation loss {summary['validation_loss']:.4f}, {summary['elapsed_s']:.0f} s"
        )


if __name__ == "__main__":
    run(main)
