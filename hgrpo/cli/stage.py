"""Run a stage of the pipeline: `python -m hgrpo.cli.stage <stage> --help` describes its options.

This module imports little, because a job that the warm process of the run takes over needs no more.
"""

import sys

from hgrpo.stages import order
from hgrpo.workflow.warm.client import run_warm


def main() -> None:
    """Run the stage in the warm process of the run or, without one, here."""
    from hgrpo.cli.run_stage import run_stage
    from hgrpo.command import run

    run(lambda: run_stage(order.load(sys.argv[1]), sys.argv[2:]))


if __name__ == "__main__":
    if (sys.argv[1:2] and sys.argv[1] not in order.STAGES) or not sys.argv[1:]:
        sys.exit(f"error: the name of a stage was expected: {', '.join(order.STAGES)}")
    ended = run_warm("hgrpo.cli.stage")
    sys.exit(ended) if ended is not None else main()
