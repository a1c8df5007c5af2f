"""Runs the command of every stage, in the warm process of the run or, without one, by itself.

`hgrpo/cli/__init__.py` runs this file under the name of every stage. It imports little, because a
job that the warm process runs needs no more here.
"""

import sys

from hgrpo.stages import order
from hgrpo.workflow.warm.client import run_warm

if __name__ == "__main__":
    own = __spec__.name.rpartition(".")[2]
    if own not in order.STAGES:
        sys.exit(f"error: hgrpo.cli.{own} is no command; run one of {', '.join(order.STAGES)}")
    ended = run_warm(__spec__.name)
    if ended is not None:
        sys.exit(ended)
    from hgrpo.cli.stage import run_stage

    run_stage(order.load(own))
