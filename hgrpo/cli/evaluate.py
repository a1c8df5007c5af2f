"""Evaluate a policy on the validation and test panels; one row per episode.

Example:
  python -m hgrpo.cli.evaluate --config results/bakeoff/config.yaml --method flatGRPO \\
      --seed 11 --round 4 --assets results/bakeoff/assets --base results/bakeoff/base \\
      --policy results/bakeoff/rl/flatGRPO/seed_11/round_4/adapter --out round_4
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import evaluate

if __name__ == "__main__":
    run_stage(evaluate, __doc__)
