"""Write report.html, the tables and methods_comparison.json from cached results.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage report > report.json
  python -m hgrpo.cli.report --config report.json --study config.yaml \\
      --episodes report/episodes.parquet --train-logs rl/*/*/*/train_log.json \\
      --fits turnrd/*/*/*/train_log.json \\
      --figures report/figures --snapshots rl/*/*/*/config.yaml --expert expert/summary.json \\
      --sft sft/summary.json --assets assets/manifest.json \\
      --out report/report.html --comparison report/methods_comparison.json --tables report/tables
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.atomic import atomic_file, atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.report.export_comparison import methods_comparison
from hgrpo.report.inputs import read_inputs
from hgrpo.report.page import Page, render
from hgrpo.report.provenance_rows import provenance_rows, read_mapping
from hgrpo.report.scripted import scripted_players
from hgrpo.report.tables import all_tables, write_tables


def main() -> None:
    """Read, compare, write."""
    parser = arguments(__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the study's config.yaml")
    parser.add_argument("--episodes", type=Path, required=True, help="merged episodes.parquet")
    parser.add_argument(
        "--train-logs", type=Path, nargs="*", default=[], help="train_log.json of every round"
    )
    parser.add_argument(
        "--fits", type=Path, nargs="*", default=[], help="train_log.json of every TurnRD fit"
    )
    parser.add_argument(
        "--figures", type=Path, required=True, help="folder that hgrpo.cli.figures wrote"
    )
    parser.add_argument(
        "--snapshots", type=Path, nargs="*", default=[], help="config.yaml of every round"
    )
    parser.add_argument("--expert", type=Path, help="summary.json of the expert stage")
    parser.add_argument("--sft", type=Path, help="summary.json of supervised fine-tuning")
    parser.add_argument("--assets", type=Path, help="manifest.json of the assets")
    parser.add_argument("--out", type=Path, required=True, help="report.html to write")
    parser.add_argument("--comparison", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--tables", type=Path, required=True, help="folder of CSV files to write")
    args = parser.parse_args()
    config, study = read_config(args.config), read_mapping(args.study)
    inputs = read_inputs(config, args.episodes, args.train_logs, args.fits)
    stages = {
        name: read_mapping(path)
        for name, path in (("assets", args.assets), ("expert", args.expert), ("sft", args.sft))
        if path
    }
    snapshots = {"study": [study]} | {name: [stage] for name, stage in stages.items()}
    snapshots["rl rounds"] = [read_mapping(path) for path in args.snapshots]
    scripted = scripted_players(stages.get("expert", {}))
    page = Page(
        study=config.get("study", study.get("name", "")),
        description=config.get("description", ""),
        comparison=inputs.comparison,
        logs=inputs.logs,
        arms=inputs.arms,
        figures=args.figures,
        study_config=study,
        provenance=provenance_rows(snapshots),
        scripted=scripted,
        left_out=left_out(stages),
    )
    tables = all_tables(inputs, scripted)
    labels = {name: inputs.arms.label(name) for name in inputs.arms.names}
    manifest = methods_comparison(inputs.comparison, inputs.episodes, labels)
    html = render(page)
    with atomic_folder(args.tables) as folder:
        write_tables(tables, folder)
    with atomic_file(args.comparison) as path:
        path.write_text(json.dumps(manifest, indent=1) + "\n")
    with atomic_file(args.out) as path:
        path.write_text(html, encoding="utf-8")
    print(f"{args.out}: {len(html) / 1e6:.1f} MB")


def left_out(stages: Mapping[str, Mapping]) -> Sequence[tuple[str, str, int]]:
    """(stage, reason, count) of games and trajectories that never reached training, or are odd."""
    rows = [
        (name, reason, count)
        for name, stage in stages.items()
        for reason, count in (stage.get("skipped") or {}).items()
        if count
    ]
    too_long = stages.get("sft", {}).get("too_long", 0)
    return [*rows, ("sft", "too long", too_long)] if too_long else rows


if __name__ == "__main__":
    run(main)
