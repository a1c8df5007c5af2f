"""Draw every figure of a study from its cached results: SVG, with the numbers as CSV beside it.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage figures > figures.json
  python -m hgrpo.cli.figures --config figures.json --episodes report/episodes.parquet \\
      --train-logs rl/*/*/*/train_log.json --turns rl/*/*/round_1/turns.parquet \\
      --fits credit_fit/*/*/*/train_log.json --out report/figures
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import figures

if __name__ == "__main__":
    run_stage(figures, __doc__)
