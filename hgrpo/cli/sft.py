"""Fine-tune the base on expert trajectories: loss on action tokens, one sequence a trajectory.

Example:
  python -m hgrpo.cli.sft --config results/bakeoff/config.yaml --base results/bakeoff/base \\
      --expert results/bakeoff/expert --out results/bakeoff/sft
"""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import sft

if __name__ == "__main__":
    run_stage(sft, __doc__)
