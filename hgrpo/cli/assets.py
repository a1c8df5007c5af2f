"""Make or collect the tasks of an environment and write its panels.

The environment checks each task before it lets it in, and fetches data files first where its
settings say so.

Example:
  python -m hgrpo.cli.assets --config results/bakeoff/config.yaml --seed 0 \\
      --out results/bakeoff/assets
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import assets

if __name__ == "__main__":
    run_stage(assets, __doc__)
