"""Draw learning curves of runs from anywhere in one picture: label=path, as often as you like.

A path is a study's methods_comparison.json, ours or H-GRPO's, with `:arm` behind it if the file has
several arms. Nothing is compared: other people's runs have other tasks, panels and budgets.

Example:
    python -m hgrpo.cli.overlay --out overlay.svg \\
        --run "TurnRD v2=results/bakeoff/report/methods_comparison.json:TurnRDV2" \\
        --run "theirs=~/theirs/methods_comparison.json:TurnRDV2"
"""

import json
from collections.abc import Mapping
from pathlib import Path

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.config.read import did_you_mean
from hgrpo.errors import UserError


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

    draw(runs, args.out)
    print(f"{args.out}: {', '.join(runs)}; the numbers are in {args.out.with_suffix('.csv')}")


def read_run(given: str) -> tuple[str, list[Mapping]]:
    """The label and the rounds of `LABEL=PATH[:ARM]`.

    Raises:
        UserError: the text or the file is not of that form, or has no such arm.
    """
    label, sign, place = given.partition("=")
    path, colon, arm = place.rpartition(":")
    if not colon:
        path, arm = place, ""
    if not sign or not label or not path:
        raise UserError(f"--run {given}: LABEL=PATH or LABEL=PATH:ARM was expected")
    file = Path(path).expanduser()
    try:
        arms = json.loads(file.read_text())
        known = [name for name, entry in arms.items() if "_per_round_eval" in entry]
    except FileNotFoundError:
        raise UserError(f"--run {label}: {file}: no such file") from None
    except (ValueError, AttributeError, TypeError):
        raise UserError(f"--run {label}: {file}: not a methods_comparison.json") from None
    if not arm and len(known) == 1:
        arm = known[0]
    if arm not in known:
        wanted = f"no arm {arm!r}" if arm else "several arms, so name one with :ARM"
        raise UserError(f"--run {label}: {file}: {wanted}{did_you_mean(arm, known)}")
    rounds = arms[arm]["_per_round_eval"]
    for row in rounds:
        for key in ("round", "avg_R", "pct_success"):
            if not isinstance(row.get(key), int | float):
                raise UserError(f"--run {label}: {file}: {arm}: a round without {key}")
    return label, rounds


if __name__ == "__main__":
    run(main)
