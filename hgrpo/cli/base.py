"""Build the tiny base model (tokenizer, weights, pretraining), or adopt a pretrained one.

Example:
  python -m hgrpo.cli.base --config results/bakeoff/config.yaml \\
      --expert results/bakeoff/expert --seed 0 --out results/bakeoff/base
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import base

if __name__ == "__main__":
    run_stage(base, __doc__)
