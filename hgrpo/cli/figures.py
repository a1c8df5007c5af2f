"""The command of a stage; `hgrpo/stages/figures.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import figures

if __name__ == "__main__":
    run_stage(figures)
