"""Draw the learning curves of arbitrary runs in one plot; pass --run once per curve.

The path in --run is a results folder or a methods_comparison.json, written by this project or by
H-GRPO. If it contains several arms, append `:ARM` to select one. The plot shows no statistics,
because the tasks and budgets of the runs may differ.

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
from hgrpo.config.read import validate
from hgrpo.errors import UserError, did_you_mean

_FILE = "methods_comparison.json"
_ROUNDS = "_per_round_eval"


class Round(BaseModel):
    """The keys of an evaluation that are plotted; other keys in the file are ignored."""

    model_config = ConfigDict(allow_inf_nan=False)
    round: int
    avg_R: float  # noqa: N815  (the key in the file)
    pct_success: float = Field(ge=0, le=1, description="a fraction")


class _Run(BaseModel):
    rounds: list[Round] = Field(min_length=1)


def main() -> None:
    """Read the runs, and write the plot and its data."""
    parser = command_parser(__doc__)
    parser.add_argument("--run", action="append", required=True, metavar="LABEL=PATH[:ARM]")
    parser.add_argument("--out", type=Path, required=True, help="SVG or PDF file to write")
    args = parser.parse_args()
    runs = dict(map(read_run, args.run))
    # Imported here so that invalid options are reported before the slow import of matplotlib.
    from hgrpo.report.overlay import draw

    draw(runs, args.out)
    print(f"{args.out}: {', '.join(runs)}; data: {args.out.with_suffix('.csv')}")


def read_run(text: str) -> tuple[str, list[dict]]:
    """Parse `LABEL=PATH[:ARM]`; return the label and the rounds of the run, or raise UserError."""
    label, _, place = text.partition("=")
    path, arm = Path(place).expanduser(), ""
    if not path.exists():  # the part after the last colon may be an arm or part of the path
        place, _, arm = place.rpartition(":")
        path = Path(place).expanduser()
    file = path / "report" / _FILE if path.is_dir() else path
    where = f"--run {label}: {file}"
    if not file.is_file():
        raise UserError(f"{where}: no such file; expected LABEL=PATH or LABEL=PATH:ARM")
    try:
        arms = json.loads(file.read_bytes())
        known = [name for name, entry in arms.items() if _ROUNDS in entry]
    except (ValueError, AttributeError, TypeError):
        raise UserError(f"{where}: not a {_FILE}") from None
    if not arm and len(known) == 1:
        arm = known[0]
    if arm not in known:
        problem = f"no arm {arm!r}" if arm else "the file has several arms; choose one with :ARM"
        raise UserError(f"{where}: {problem}{did_you_mean(arm, known)}")
    curve = validate(_Run, {"rounds": arms[arm][_ROUNDS]}, f"{where}: {arm}")
    return label, curve.model_dump()["rounds"]


if __name__ == "__main__":
    run(main)
