"""The runs that should start first, for `snakemake --prioritize`; the Makefile asks for them.

`python -m hgrpo.workflow.longest_runs study=<study> ...` prints a file of each run's last round.
The arguments are those of snakemake's --config. A run whose credit plays takes several times as
long as the others. If it began last, one core would wait for it in the end. Only those of the first
seed are named, so other arms' first results come soon all the same.
"""

import sys
from pathlib import Path

from hgrpo.command import run
from hgrpo.stages.files import round_folder
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
    config = dict(word.split("=", 1) for word in sys.argv[1:])
    name = config.pop("study")
    config.pop("reuse", None)
    study = load_study(Path(f"configs/studies/{name}.yaml"), config)
    for path in longest_runs(study):
        print(f"results/{name}/{path}")


if __name__ == "__main__":
    run(main)
