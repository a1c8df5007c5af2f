"""Score credit that other code computed for published rollouts whose truth is known.

The file holds one row per turn with the columns task_id, rollout, turn and credit, and if the loss
sees other numbers than the credit, advantage. docs/score_credit.md explains the format.

Examples:
  python -m hgrpo.cli.score_credit mine.parquet
  python -m hgrpo.cli.score_credit mine.parquet --name "my method" --csv row.csv
"""

from pathlib import Path

import pandas as pd

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.evaluation.truth.published import read_credits, read_published
from hgrpo.evaluation.truth.scoring import score
from hgrpo.report.csv_file import write_csv
from hgrpo.report.truth_section import SHOWN, table_rows

PUBLISHED = Path("docs/truth")
_DIGITS = "%.6g"


def main() -> None:
    """Score the file, and print its row in the table of the built-in methods."""
    parser = command_parser(__doc__)
    parser.add_argument("file", type=Path, help="Parquet file with the credit of every turn")
    parser.add_argument(
        "--truth",
        type=Path,
        default=PUBLISHED,
        help=f"folder of the rollouts and their truth (default: {PUBLISHED})",
    )
    parser.add_argument("--name", help="name of the method (default: that of the file)")
    parser.add_argument("--csv", type=Path, help="file to write the row to, as in truth.csv")
    args = parser.parse_args()
    places, truth = read_published(args.truth)
    credit, advantage = read_credits(args.file, places)
    name = args.name or args.file.stem
    row = pd.DataFrame([{"method": name, "label": name} | score(credit, advantage, truth)])
    others = known_rows(args.truth)
    print("\n".join(lines(row, others)))
    if others.empty:
        print(
            f"{args.truth}: no truth.csv with rows of built-in methods (credit_agreement has one)"
        )
    if args.csv:
        with atomic_file(args.csv) as path:
            write_csv(row, path, _DIGITS)


def known_rows(folder: Path) -> pd.DataFrame:
    """The published rows of the built-in methods; an empty table if there are none."""
    path = folder / "truth.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def lines(row: pd.DataFrame, others: pd.DataFrame) -> list[str]:
    """The table as text, the closest method first; `row` is marked with `>`."""
    shown = table_rows(pd.concat([others, row.assign(mine=True)], ignore_index=True))
    headings = ["method", *SHOWN, "beats_shuffled"]
    cells = [headings]
    for each in shown:
        numbers = [f"{value} ({interval})" if interval else value for value, interval in each.cells]
        cells.append([each.label, *(text or "-" for text in numbers), each.beats or "-"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    marks = [" ", *(">" if each.mine else " " for each in shown)]
    texts = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return [f"{mark} {text}" for mark, text in zip(marks, texts, strict=True)]


if __name__ == "__main__":
    run(main)
