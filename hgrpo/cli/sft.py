"""The command of a stage; `hgrpo/stages/sft.py` has its help text and the work."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import sft

if __name__ == "__main__":
    run_stage(sft)
