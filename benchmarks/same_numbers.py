"""Compare two results folders of a study: weights, rollouts, tables and the data of figures.

Use this script to check that a code change does not affect results: run the study before and after
the change on the same machine, then compare the two folders. The script compares all files that are
in both folders, except timings. It also lists the files that are in only one folder. For folders of
the sandbox, such as results/sandbox_ci, it compares the tables and the data of figures of all
studies.

The exit status is 0 if all files are equal, and 1 if a file differs or nothing can be compared.

Example:
  python benchmarks/same_numbers.py before/results/smoke results/smoke
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file

_PATTERNS = (
    "expert/trajectories.parquet",
    "base/model.safetensors",
    "sft/adapter/*.safetensors",
    "rl/*/seed_*/round_*/adapter/*.safetensors",
    "rl/*/seed_*/round_*/turns.parquet",
    "rl/*/seed_*/round_*/sequences.parquet",
    "credit_fit/*/seed_*/round_*/model.safetensors",
    "eval/*/seed_*/round_*/episodes.parquet",
    "report/tables/*.csv",
    "report/figures/*.csv",
    "studies/*/*.csv",
    "studies/*/figures/*.csv",
)
# Columns of tables that contain seconds.
_TIMINGS = re.compile(r".*(seconds|elapsed|_s)$|per_second|hours?$")


def main() -> None:
    """Print a line per file, and the totals; exit 1 if a file differs or nothing is compared."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="results/<study> before the change")
    parser.add_argument("after", type=Path, help="results/<study> after the change")
    args = parser.parse_args()
    compared, different = 0, 0
    for name in sorted(_names(args.before) | _names(args.after)):
        before, after = args.before / name, args.after / name
        if not (before.is_file() and after.is_file()):
            print(f"in only one folder: {name}")
            continue
        differences = list(_differences(before, after))
        compared, different = compared + 1, different + bool(differences)
        print(
            f"{'DIFFERENT' if differences else 'equal':<10}{name}"
            f"{': ' if differences else ''}{'; '.join(differences)}"
        )
    print(f"{compared} files compared, {different} different")
    sys.exit(different > 0 or compared == 0)


def _names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for pattern in _PATTERNS for path in root.glob(pattern)}


def _differences(before: Path, after: Path) -> Iterator[str]:
    """Describe the differences between two files of the same kind."""
    if before.suffix == ".safetensors":
        yield from _tensors(load_file(before), load_file(after))
    elif before.suffix == ".csv":
        tables = [
            pd.read_csv(path).filter(regex=f"^(?!{_TIMINGS.pattern})") for path in (before, after)
        ]
        yield from _columns(*map(pa.Table.from_pandas, tables))
    else:
        yield from _columns(pq.read_table(before), pq.read_table(after))


def _tensors(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> Iterator[str]:
    for name in sorted(before.keys() ^ after.keys()):
        yield f"tensor {name} is in only one file"
    for name in sorted(before.keys() & after.keys()):
        if not torch.equal(before[name], after[name]):
            yield f"tensor {name}"


def _columns(before: pa.Table, after: pa.Table) -> Iterator[str]:
    if before.schema.names != after.schema.names:
        yield f"columns {before.schema.names} and {after.schema.names}"
    for name in before.schema.names:
        if name in after.schema.names and not before[name].equals(after[name]):
            yield f"column {name}"


if __name__ == "__main__":
    main()
