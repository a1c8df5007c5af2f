"""Let every credit assigner of a study credit the same rollouts, and say how far they agree.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage credit_agreement \\
      > agreement.json
  python -m hgrpo.cli.credit_agreement --config agreement.json --seed 11 \\
      --rollouts results/bakeoff/rl/flatGRPO/seed_11/round_2 --assets results/bakeoff/assets \\
      --base results/bakeoff/base --policy results/bakeoff/rl/flatGRPO/seed_11/round_1/adapter \\
      --fitted results/bakeoff/credit_fit/TurnRDV2/seed_11/round_1 \\
      --cache results/bakeoff/cache --out results/bakeoff/credit_agreement
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import credit_agreement

if __name__ == "__main__":
    run_stage(credit_agreement, __doc__)
