"""The command of a stage; `hgrpo/stages/evaluate.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import evaluate

if __name__ == "__main__":
    run_stage(evaluate)
