"""Merge the episodes of every evaluation into one checked table.

Refuses, naming them: missing arms, episodes evaluated twice, evaluations on different panels.

Example:
  python -m hgrpo.cli.merge --config '{"methods": ["SFTOnly", "flatGRPO"]}' \\
      --out results/bakeoff/report/episodes.parquet results/bakeoff/eval/*/*/*/episodes.parquet
"""

from pathlib import Path

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.evaluation.merge import merge_episodes


def main() -> None:
    """Read, check, write."""
    parser = arguments(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("episodes", type=Path, nargs="+", help="episodes.parquet files")
    args = parser.parse_args()
    frame = merge_episodes(args.episodes, read_config(args.config).get("methods"))
    with atomic_file(args.out) as path:
        frame.to_parquet(path, compression="zstd", index=False)
    print(f"{len(frame)} episodes of {frame['method'].nunique()} arms: {args.out}")


if __name__ == "__main__":
    run(main)
