"""The command of a stage; `hgrpo/stages/evaluate.py` has its help text and the work."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import evaluate

if __name__ == "__main__":
    run_stage(evaluate)
