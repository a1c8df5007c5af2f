"""Merge the episodes of every evaluation into one checked table.

It refuses missing arms, episodes evaluated twice and evaluations on different panels, and names
them.

Example:
  python -m hgrpo.cli.merge --config '{"methods": ["SFTOnly", "flatGRPO"]}' \\
      --out results/bakeoff/report/episodes.parquet results/bakeoff/eval/*/*/*/episodes.parquet
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import merge

if __name__ == "__main__":
    run_stage(merge, __doc__)
