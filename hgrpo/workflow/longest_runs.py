"""The runs that should start first, for `snakemake --prioritize`; the Makefile asks for them.

`python -m hgrpo.workflow.longest_runs study=<study> ...` prints a file of each run's last round.
It takes the same arguments as snakemake's --config. Some methods play on from many turns to compute
their credit, and their runs take several times as long as others. If such a run starts last, the
other core has nothing to do in the end. Only runs of the first seed are printed, so that the first
results of other arms still come soon.
"""

import sys
from pathlib import Path

from hgrpo.command import run
from hgrpo.stages.files import round_folder
from hgrpo.study.overrides import OF_THE_RUN, read_assignments
from hgrpo.study.study import Study, load_study


def longest_runs(study: Study) -> list[str]:
    """Paths below results/<study> of the last rounds of the first seed's arms that play."""
    seed, last = study.config.seeds[0], study.config.rounds
    return [
        f"{round_folder('rl', name, seed, last)}/summary.json"
        for name, arm in study.methods.items()
        if arm.train and arm.credit.declared.plays
    ]


def main() -> None:
    """Print the paths."""
    config = read_assignments(sys.argv[1:])
    name = config["study"]
    own = {key: value for key, value in config.items() if key not in OF_THE_RUN}
    study = load_study(Path(f"configs/studies/{name}.yaml"), own)
    for path in longest_runs(study):
        print(f"results/{name}/{path}")


if __name__ == "__main__":
    run(main)
