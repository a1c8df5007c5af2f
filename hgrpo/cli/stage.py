"""Run a stage of the pipeline: `python -m hgrpo.cli.stage <stage> --help` describes its options.

This module imports little, so that jobs start fast when they are forked from a process that has
already imported the stages.
"""

import sys

from hgrpo.stages.order import STAGES
from hgrpo.workflow.warm import run_warm

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in STAGES:
        sys.exit(f"error: expected the name of a stage: {', '.join(STAGES)}")
    ended = run_warm("hgrpo.cli.run_stage")
    if ended is not None:
        sys.exit(ended)
    from hgrpo.cli.run_stage import main
    from hgrpo.command import run

    run(main)
