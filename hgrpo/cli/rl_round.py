"""The command of a stage; `hgrpo/stages/rl_round.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import rl_round

if __name__ == "__main__":
    run_stage(rl_round)
