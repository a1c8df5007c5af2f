"""The command of a stage; `hgrpo/stages/merge.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import merge

if __name__ == "__main__":
    run_stage(merge)
