"""Fit a learnt credit assigner on the rounds played so far; the next round reads the fit.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage credit_fit --method TurnRDV2 \\
      > fit.json
  python -m hgrpo.cli.credit_fit --config fit.json --seed 11 --round 2 \\
      --rounds results/bakeoff/rl/TurnRDV2/seed_11/round_{1,2} \\
      --out results/bakeoff/credit_fit/TurnRDV2/seed_11/round_2
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import credit_fit

if __name__ == "__main__":
    run_stage(credit_fit, __doc__)
