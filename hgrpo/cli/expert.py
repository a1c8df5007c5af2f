"""Collect demonstrations on the training panel: a scripted expert's, or people's played again.

Example:
  python -m hgrpo.cli.expert --config results/bakeoff/config.yaml --seed 0 \\
      --assets results/bakeoff/assets --out results/bakeoff/expert
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import expert

if __name__ == "__main__":
    run_stage(expert, __doc__)
