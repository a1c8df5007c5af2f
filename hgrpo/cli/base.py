"""Build the tiny base model (tokenizer, weights, pretraining), or adopt a pretrained one.

Example:
  python -m hgrpo.cli.base --config results/bakeoff/config.yaml \\
      --expert results/bakeoff/expert --seed 0 --out results/bakeoff/base
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.base_model.make import build, obtain
from hgrpo.cli.entry import arguments, engine_section, read_config, run, section
from hgrpo.errors import UserError
from hgrpo.learning.demonstrations import read_demonstrations, texts
from hgrpo.learning.pretrain import pretrain
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.decoder import check_supported

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def main() -> None:
    """Parse the arguments and make the base."""
    parser = arguments(__doc__)
    parser.add_argument("--expert", type=Path, required=True, help="folder of the expert stage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    given = read_config(args.config)
    config, engine = section(given, "model", ModelConfig), engine_section(given).kind
    with atomic_folder(args.out) as out:
        if config.tiny is None:
            summary = obtain(config, _check_playable if engine == "torch" else None, out)
        else:
            summary = _build(config, args, out)
    print(f"base: {summary['parameters']:,} parameters, vocabulary {summary['vocabulary']:,}")


def _check_playable(config: "PretrainedConfig") -> None:
    try:
        check_supported(config)
    except UserError as error:
        raise UserError(f"{error}; `engine: {{kind: vllm}}` in the study may play it") from None


def _build(config: ModelConfig, args: argparse.Namespace, out: Path) -> dict:
    demonstrations = read_demonstrations(args.expert)
    idle = not config.tiny.pretrain_trajectories
    with tqdm(desc="pretrain", unit="step", disable=idle) as bar:

        def show(row: dict, steps: int) -> None:
            bar.total = steps
            bar.set_postfix(loss=f"{row['loss']:.3f}", refresh=False)
            bar.update()

        return build(
            config.tiny,
            texts(demonstrations),
            config.tiny.cut,
            args.seed,
            out,
            lambda folder: pretrain(config, demonstrations, args.seed, folder, show),
        )


if __name__ == "__main__":
    run(main)
