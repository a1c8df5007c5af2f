"""Play one round of reinforcement learning; a killed round goes on after its last finished step.

Example:
  python -m hgrpo.cli.rl_round --config results/bakeoff/rl/flatGRPO/seed_11/round_1/config.yaml \\
      --seed 11 --round 1 --assets results/bakeoff/assets --base results/bakeoff/base \\
      --sft results/bakeoff/sft/adapter --policy results/bakeoff/sft/adapter \\
      --scratch results/bakeoff/scratch/flatGRPO/seed_11/round_1 --out round_1
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import rl_round

if __name__ == "__main__":
    run_stage(rl_round, __doc__)
