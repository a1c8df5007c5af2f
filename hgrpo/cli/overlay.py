"""Draw learning curves of runs from anywhere in one picture: label=path, as often as you like.

A path is a results folder or a methods_comparison.json, ours or H-GRPO's, with `:arm` behind it if
it has several arms. Nothing is compared: other people's runs have other tasks, panels and budgets.

Example:
    python -m hgrpo.cli.overlay --out overlay.svg \\
        --run "TurnRD v2=results/bakeoff:TurnRDV2" \\
        --run "theirs=~/theirs/methods_comparison.json:TurnRDV2"
"""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.config.read import did_you_mean, validate
from hgrpo.errors import UserError

_FILE = "methods_comparison.json"
_ROUNDS = "_per_round_eval"


class Round(BaseModel):
    """The part of an evaluation that is drawn; other keys are ignored."""

    model_config = ConfigDict(allow_inf_nan=False)
    round: int
    avg_R: float  # noqa: N815  (the file's own name)
    pct_success: float = Field(ge=0, le=1, description="a fraction")


class _Run(BaseModel):
    rounds: list[Round] = Field(min_length=1)


def main() -> None:
    """Read the runs, draw them, and write the numbers beside the picture."""
    parser = command_parser(__doc__)
    parser.add_argument("--run", action="append", required=True, metavar="LABEL=PATH[:ARM]")
    parser.add_argument("--out", type=Path, required=True, help="SVG or PDF file to write")
    args = parser.parse_args()
    if args.out.suffix not in (".svg", ".pdf"):
        raise UserError(f"--out: {args.out}: a name that ends in .svg or .pdf was expected")
    runs = {}
    for given in args.run:
        label, rounds = read_run(given)
        if label in runs:
            raise UserError(f"--run: {label!r} is given twice")
        runs[label] = rounds
    # Imported here: a mistake in the options should not wait for matplotlib.
    from hgrpo.report.overlay import draw

    draw(
        {label: [each.model_dump() for each in rounds] for label, rounds in runs.items()}, args.out
    )
    print(f"{args.out}: {', '.join(runs)}; the numbers are in {args.out.with_suffix('.csv')}")


def read_run(given: str) -> tuple[str, list[Round]]:
    """The label and the rounds of `LABEL=PATH[:ARM]`.

    Raises:
        UserError: the text or the file is not of that form, or has no such arm.
    """
    label, _, place = given.partition("=")
    if not label or not place:
        raise UserError(f"--run {given}: LABEL=PATH or LABEL=PATH:ARM was expected")
    path, arm = _split(place)
    file = path / "report" / _FILE if path.is_dir() else path
    where = f"--run {label}: {file}"
    try:
        arms = json.loads(file.read_bytes())
        known = [name for name, entry in arms.items() if _ROUNDS in entry]
    except FileNotFoundError:
        raise UserError(f"{where}: no such file") from None
    except (ValueError, AttributeError, TypeError):
        raise UserError(f"{where}: not a {_FILE}") from None
    if not arm and len(known) == 1:
        arm = known[0]
    if arm not in known:
        wanted = f"no arm {arm!r}" if arm else "name one arm with :ARM"
        raise UserError(f"{where}: {wanted}{did_you_mean(arm, known)}")
    return label, validate(_Run, {"rounds": arms[arm][_ROUNDS]}, f"{where}: {arm}").rounds


def _split(place: str) -> tuple[Path, str]:
    """The path and the arm, "" if none is named; a path may have colons in it."""
    whole = Path(place).expanduser()
    path, colon, arm = place.rpartition(":")
    if whole.exists() or not colon or not path:
        return whole, ""
    return Path(path).expanduser(), arm


if __name__ == "__main__":
    run(main)
