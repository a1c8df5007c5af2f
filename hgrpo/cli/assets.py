"""The command of a stage; `hgrpo/stages/assets.py` holds its help text and its code."""

from hgrpo.cli.stage import run_stage
from hgrpo.stages import assets

if __name__ == "__main__":
    run_stage(assets)
