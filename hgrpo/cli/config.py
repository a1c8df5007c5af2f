"""Print a study with all its settings, or the settings of one of its stages.

Examples:
  python -m hgrpo.cli.config bakeoff rounds=3 training.lr=1e-4
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage report > report.json
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage rl_round --method Progressive
"""

import sys
from pathlib import Path

import yaml

from hgrpo.cli.entry import add_settings, command_parser
from hgrpo.command import run
from hgrpo.config.canonical import as_json
from hgrpo.errors import UserError, did_you_mean
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load
from hgrpo.study.overrides import read_assignments
from hgrpo.study.study import Study, load_study

_OF_ONE_METHOD = tuple(stage for stage in STAGES if belongs_to_an_arm(stage))


def main() -> None:
    """Print the study or the settings of a stage."""
    parser = command_parser(__doc__)
    parser.add_argument("study", type=Path, help="name of a study, or its file in configs/studies")
    add_settings(parser, "override a key of the study")
    parser.add_argument("--stage", choices=STAGES, help="print the settings of this stage as JSON")
    parser.add_argument("--method", help=f"required by the stages {', '.join(_OF_ONE_METHOD)}")
    args = parser.parse_intermixed_args()
    if args.method and args.stage not in _OF_ONE_METHOD:
        parser.error(f"--method requires --stage {', '.join(_OF_ONE_METHOD)}")
    file = args.study if args.study.suffix else Path("configs/studies", f"{args.study}.yaml")
    study = load_study(file, read_assignments(args.settings))
    if args.stage:
        print(stage_text(study, args.stage, args.method))
    else:
        yaml.safe_dump(study.resolved(), sys.stdout, sort_keys=False)


def stage_text(study: Study, stage: str, method: str | None) -> str:
    """Return the settings that the pipeline passes to a stage, as one line of JSON.

    Raises:
        UserError: the stage runs once per method, and `method` is missing or unknown.
    """
    if stage in _OF_ONE_METHOD and method not in study.methods:
        problem = "--method is missing" if method is None else f"--method {method}: unknown"
        raise UserError(f"{problem}{did_you_mean(method or '', study.methods)}")
    return as_json(load(stage).from_study(study, method))


if __name__ == "__main__":
    run(main)
