"""Compare credit with the published ground truth of the same rollouts.

The credit is computed by a method or read from a file. --method is the name of a file in
configs/methods. The method must not require a policy, continuations or a judge. For a method, the
command also lists the turns with the largest errors.

A credit file has one row per turn, and the columns task_id, rollout, turn and credit. If the loss
uses values that differ from the credit, add them in a column named advantage. See
docs/score_credit.md.

Examples:
  python -m hgrpo.cli.score_credit --method Progressive
  python -m hgrpo.cli.score_credit mine.parquet
  python -m hgrpo.cli.score_credit mine.parquet --name "my method" --csv row.csv
"""

import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.config.read import read_yaml, validate
from hgrpo.credit.base import ORDER_DEPENDENT, ROUNDING
from hgrpo.evaluation.truth.measured import MeasuredTruth
from hgrpo.evaluation.truth.published import TURN, read_credits, read_published
from hgrpo.evaluation.truth.scoring import score
from hgrpo.learning.advantages import advantage_shares, size_caution
from hgrpo.report.csv_file import write_csv
from hgrpo.report.truth_section import SHOWN, table_rows
from hgrpo.standardise import standardise
from hgrpo.trajectories.store import TURNS_FILE, read_turns

PROJECT = Path(__file__).resolve().parents[2]
PUBLISHED = PROJECT / "docs/truth"
_DIGITS, _FLOOR = "%.6g", 1e-12


def main() -> None:
    """Score the method or the file, and print a table that includes the built-in methods."""
    parser = command_parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "file", type=Path, nargs="?", help="Parquet file with the credit of each turn"
    )
    source.add_argument("--method", help="name of a file in configs/methods")
    parser.add_argument(
        "--truth",
        type=Path,
        default=PUBLISHED,
        help="folder of rollouts with ground truth (default: docs/truth of this checkout)",
    )
    parser.add_argument("--name", help="name in the table (default: name of the method or file)")
    parser.add_argument("--csv", type=Path, help="CSV file to write, in the format of truth.csv")
    args = parser.parse_args()
    places, truth = read_published(args.truth)
    if args.method:
        # Imported here because computing advantages requires torch; scoring a file does not.
        from hgrpo.evaluation.truth.update import credited
        from hgrpo.learning.method import MethodConfig

        path = PROJECT / "configs/methods" / f"{args.method}.yaml"
        method = validate(MethodConfig, read_yaml(path), str(path))
        credit, advantage = credited(method, args.truth)
        name = args.name or method.full_label
        flat = not truth.centred(advantage).any()
        # Scales are compared only if credit is not normalised.
        turns = credit if method.turn_norm == "none" else np.zeros(1)
        rest = (advantage - (1 - method.alpha) * turns) / (method.alpha or 1.0)
        rest = rest[np.nan_to_num(advantage) != 0]  # skip dead groups, whose advantages are 0
        more = {
            "max_abs_credit": float(np.nanmax(np.abs(credit))),
            "mean_abs_traj_adv": float(np.abs(rest).mean()) if len(rest) else 0.0,
            "mean_abs_turn_adv": float(np.nanmean(np.abs(turns))),
        }
        cautions = [method.credit_caution(flat, shares(advantage, truth) | more)]
        atol = ROUNDING * np.nanmax(np.abs(credit))
        again = [credited(method, args.truth, order)[0] for order in range(2)]
        if not all(np.allclose(credit, x, rtol=0, atol=atol, equal_nan=True) for x in again):
            cautions.append(ORDER_DEPENDENT)
    else:
        credit, advantage = read_credits(args.file, places)
        name = args.name or args.file.stem
        if truth.centred(advantage).any():
            cautions = [size_caution(shares(advantage, truth), 0.0, 0.0)]
        else:
            equal = "equal over the turns of every trajectory" if advantage.any() else "0"
            cautions = [f"the advantage in the loss is {equal}"]
    row = pd.DataFrame([{"method": name, "label": name} | score(credit, advantage, truth)])
    cautions += [against_truth(row.iloc[0]), exchanged(advantage, truth, row.iloc[0])]
    published = args.truth / "truth.csv"
    others = pd.read_csv(published) if published.is_file() else pd.DataFrame()
    if len(others) and not args.name:
        others = others[others["method"] != args.method]  # replaced by the new row
    print(compared(row, others))
    if args.method:
        print("\nturns with the largest errors (credit and ground truth as z-scores):")
        print(worst_turns(args.truth, credit, truth.advantage))
    for caution in filter(None, cautions):
        print(f"caution: {name}: {caution}", file=sys.stderr)
    if args.csv:
        with atomic_file(args.csv) as path:
            write_csv(row, path, _DIGITS)


def shares(advantage: np.ndarray, truth: MeasuredTruth) -> dict[str, float | None]:
    """Return `advantage_shares` for advantages [N]; NaN is treated as 0."""
    scaled = np.nan_to_num(advantage) / (np.nanmax(np.abs(advantage)) or 1.0)
    return advantage_shares(np.split(scaled, np.cumsum(truth.lengths)[:-1]))


def against_truth(row: pd.Series) -> str:
    """Return a warning if the correlation with ground truth is negative or may be 0."""
    if row["advantage_pearson_upper"] < 0:
        where = ""
    elif row["within_pearson_upper"] < 0:
        where = " within trajectories"
    elif row["within_pearson_lower"] <= 0 <= row["within_pearson_upper"]:
        return (
            "within trajectories, its correlation with ground truth is not distinguishable from 0"
        )
    else:
        return ""
    return (
        f"its advantages correlate negatively with ground truth{where}; check the credit's sign, "
        "and whether each credit is assigned to the correct turn"
    )


def exchanged(advantage: np.ndarray, truth: MeasuredTruth, row: pd.Series) -> str:
    """Return a warning if swapping rollout and turn makes advantages [N] fit the truth better."""
    side = int(truth.lengths[0])
    if len(advantage) != truth.groups * side**2 or set(truth.lengths) != {side}:
        return ""
    turned = advantage.reshape(-1, side, side).swapaxes(1, 2).ravel()
    other = score(turned, turned, truth)
    nearest = max(row["within_pearson_upper"], -row["within_pearson_lower"])
    if not other["within_pearson_lower"] > nearest:
        return ""
    return (
        "with rollout and turn swapped, the correlation with ground truth within trajectories is "
        f"{other['within_pearson']:.2f}; check the order of these two columns"
    )


def worst_turns(folder: Path, credit: np.ndarray, truth: np.ndarray) -> str:
    """Table of the turns whose z-scores of credit and ground truth differ most."""
    turns = read_turns(folder / TURNS_FILE, [*TURN, "observation", "action"]).to_pandas()
    turns["credit"], turns["truth"] = standardise(credit, _FLOOR), standardise(truth, _FLOOR)
    for name in ("observation", "action"):
        turns[name] = [textwrap.shorten(text, 40, placeholder="...") for text in turns[name]]
    worst = (turns["credit"] - turns["truth"]).abs().nlargest(10).index
    return turns.loc[worst].to_string(index=False, float_format="{:+.1f}".format)


def compared(row: pd.DataFrame, others: pd.DataFrame) -> str:
    """Table of all methods as text, best first; the user's row is marked with `>`."""
    cells = []
    for each in table_rows(pd.concat([others, row.assign(mine=True)], ignore_index=True)):
        numbers = [f"{value} ({interval})" if interval else value for value, interval in each.cells]
        mark = ">" if each.mine else ""
        cells.append([mark, each.label, *(text or "-" for text in numbers), each.beats or "-"])
    headings = ["", "method", *SHOWN, "beats_shuffled"]
    return tabulate(cells, headings, "plain", disable_numparse=True)


if __name__ == "__main__":
    # Restart Python with the hash seed of training jobs, because assigners may use hash().
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, again, os.environ | {"PYTHONHASHSEED": "0"})
    run(main)
