"""The command of a stage; `hgrpo/stages/credit_agreement.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import credit_agreement

if __name__ == "__main__":
    run_stage(credit_agreement)
