"""Write report.html, the tables and methods_comparison.json from cached results.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage report > report.json
  python -m hgrpo.cli.report --config report.json --study config.yaml \\
      --episodes report/episodes.parquet --train-logs rl/*/*/*/train_log.json \\
      --fits credit_fit/*/*/*/train_log.json \\
      --figures report/figures --snapshots rl/*/*/*/config.yaml --expert expert/summary.json \\
      --sft sft/summary.json --assets assets/manifest.json \\
      --out report/report.html --comparison report/methods_comparison.json --tables report/tables
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import report

if __name__ == "__main__":
    run_stage(report, __doc__)
