"""Compute the reference rates of `make plan` from finished runs on this machine.

Each folder adds or replaces two rows: one for the game, and one for the player (the model).

- `--games-only` does not change the rows of players. Use it for runs with too few steps to measure
  players.
- `--players-only` does not change the rows of games, and uses the tokens per trajectory in these
  rows. Use it for models with random weights, whose trajectories are longer.
- `--tokens` reads the length of trajectories from a published table. Use it for shortened runs,
  which train a different policy.
- `--float32` measures the slowdown without bfloat16. It compares two runs of a study; the second
  has `train_dtype: float32` in the model's file.
- `--starts` lists folders from which the fixed costs of jobs, such as imports, are measured. They
  should contain whole runs on an idle machine.

Example:
    python workflow_scripts/reference_rates.py results/bakeoff --starts results/bakeoff
    python workflow_scripts/reference_rates.py --games-only --tokens docs/tables/sokoban/cost.csv \\
        results/sokoban
    python workflow_scripts/reference_rates.py --float32 results/smoke ../avx2/results/smoke
"""

import argparse
import csv
import json
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hgrpo.command import run
from hgrpo.games.panels import read_panels
from hgrpo.stages.files import round_folder, runs, trained_rounds
from hgrpo.store.entry import linked_jobs
from hgrpo.study.recorded import recorded_study
from hgrpo.study.study import Study
from hgrpo.workflow.planning.reference import (
    CRITIC,
    REFERENCE,
    episodes,
    parameters,
    replay,
)

_PAGES = ("merge", "figures", "report")
_SHARED_START = 1.0  # seconds of Snakemake before a stage starts its own timer
_LOADS = 0.5  # seconds of loading before an evaluation starts to play


def main() -> None:
    """Read the runs and update reference.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="folders of finished studies")
    parser.add_argument("--starts", nargs="+", type=Path, help="folders of whole runs")
    parser.add_argument(
        "--games-only", action="store_true", help="measure only games; keep the rows of players"
    )
    parser.add_argument(
        "--players-only", action="store_true", help="measure only players; keep the rows of games"
    )
    parser.add_argument("--tokens", type=Path, help="published cost.csv of the study")
    parser.add_argument("--float32", action="store_true", help="compare two runs of one study")
    parser.add_argument("--out", type=Path, default=REFERENCE)
    args = parser.parse_args()
    known = (
        json.loads(args.out.read_text(encoding="utf-8"))
        if args.out.is_file()
        else {"games": [], "players": [], "float32": 3}
    )
    if args.float32:
        half, full = (_demonstration_seconds(folder) for folder in args.results)
        known["float32"] = _short(full / half)
    else:
        for folder in args.results:
            if not args.players_only:
                _put(known["games"], game(folder, args.tokens))
            if not args.games_only:
                games = known["games"] if args.players_only else []
                _put(known["players"], player(folder, games))
        if args.starts:
            known |= overheads(args.starts)
    # Write each row of a table on one line.
    text = re.sub(r"\{[^{}]*\}", lambda row: " ".join(row[0].split()), json.dumps(known, indent=1))
    args.out.write_text(text + "\n", encoding="utf-8")


def _put(rows: list[dict], row: dict) -> None:
    """Add a row, or replace the row with the same identifying values."""
    rows[:] = [other for other in rows if _of(other) != _of(row)] + [row]
    rows.sort(key=_of)


def _of(row: dict) -> list:
    names = ("game", "turn_cap", "parameters", "compiled")
    return [row[name] for name in names if name in row]


def game(folder: Path, published: Path | None = None) -> dict:
    """The row of a study's game: seconds per `task` and per `demonstration`.

    `turns` and `tokens` (processed in forward passes) are means per training trajectory, from this
    run or from a published table.
    """
    study = recorded_study(folder)
    if published:
        rows = list(csv.DictReader(published.open(encoding="utf-8")))
        plain = [row for row in rows if not row["cf_branches"]]
        count, replies, words = (
            sum(float(row[name]) for row in plain) for name in ("trajectories", "replies", "tokens")
        )
        turns, tokens = replies / count, words / count
    else:
        turns, tokens = _lengths(folder)
    tasks = sum(map(len, read_panels(folder / "assets/panels.json").values()))
    return {
        "game": study.env.name,
        "turn_cap": study.env.turn_cap,
        "turns": _short(turns),
        "tokens": _short(tokens),
        "task": _short(_seconds(folder, "assets") / tasks),
        "demonstration": _short(_seconds(folder, "expert") / study.env.expert.trajectories),
    }


def _lengths(folder: Path) -> tuple[float, float]:
    """Mean number of turns and tokens per training trajectory of the run."""
    totals = [_json(path) for path in sorted(folder.glob("rl/*/*/*/summary.json"))]
    turns, tokens, count = (
        sum(total[f"total_{name}"] for total in totals)
        for name in ("turns", "forward_tokens", "trajectories")
    )
    return turns / count, tokens / count


def player(folder: Path, games: Sequence[dict] = ()) -> dict:
    """The row of a study's model: seconds of the stage `base`, and five durations per token.

    `sft` is the time of one demonstration in one epoch. `play`, `update`, `continuation` and
    `evaluation` are the times of one trajectory. All five are divided by the number of tokens of a
    training trajectory. This number is from the game's row in `games`, or else from this run.
    """
    study = recorded_study(folder)
    _, length = _lengths(folder)
    names = {"game": study.env.name, "turn_cap": study.env.turn_cap}
    tokens = next((row["tokens"] for row in games if names.items() <= row.items()), length)
    play, update, continuation = (length / tokens * rate for rate in _round_seconds(folder))
    evaluated = [_json(path) for path in folder.glob("eval/*/*/*/summary.json")]
    played = [(each["elapsed_s"] - _LOADS, tokens * each["n_episodes"]) for each in evaluated]
    return {
        **names,
        "parameters": parameters(study.model),
        "compiled": getattr(study.config.engine.declared, "compiled", False),
        "base": _short(_seconds(folder, "base")),
        "sft": _short(_demonstration_seconds(folder) / tokens),
        "play": _short(play),
        "update": _short(update),
        "continuation": _short(continuation or play),
        # `elapsed_s - _LOADS` is inaccurate for short evaluations. Assume at least half of `play`.
        "evaluation": _short(max(_ratio(played), play / 2)),
    }


def _round_seconds(folder: Path) -> tuple[float, float, float]:
    """Seconds of play, updates and continuations per token of the training trajectories."""
    study = recorded_study(folder)
    plain, updates, continued = [], [], []
    for arm, seed, number in trained_rounds(study):
        home = folder / f"rl/{arm}/seed_{seed}/round_{number}"
        if not (home / "summary.json").is_file():
            continue
        total = _json(home / "summary.json")
        rows = _json(home / "train_log.json")["rows"]
        # Skip the first step of a process, which compiles kernels.
        later = rows[1:] or rows
        collect, credit, update = (
            sum(row[key] for row in later) * len(rows) / len(later)
            for key in ("collect_s", "credit_s", "update_s")
        )
        played = total["total_forward_tokens"]
        more = total["all_play"]["trajectories"] - total["total_trajectories"]
        passes = study.training[arm].epochs * (CRITIC if study.methods[arm].uses_critic else 1)
        if more:
            continued.append((credit, more * played / total["total_trajectories"]))
        plain.append((collect if more else collect + credit, played))
        updates.append((update / passes, played))
    return _ratio(plain), _ratio(updates), _ratio(continued)


def _demonstration_seconds(folder: Path) -> float:
    """Seconds of fine-tuning on one demonstration for one epoch."""
    study = recorded_study(folder)
    passes = study.env.expert.trajectories * study.config.sft.epochs
    return _seconds(folder, "sft") / passes


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    seconds, amount = (sum(pair[n] for pair in pairs) for n in (0, 1))
    return seconds / amount if amount else 0.0


def overheads(folders: Sequence[Path]) -> dict:
    """Costs of jobs that do not depend on the number of tokens, from all runs.

    Returns:
        Three mappings from stages to numbers. `starts` has the fixed seconds of a job. `each` has
        the seconds per evaluation that a job reads or, for `credit_fit`, per trajectory of the
        replay. `bytes` has the bytes per unit of work.
    """
    starts = dict.fromkeys(("assets", "expert", "base", "sft"), _SHARED_START)
    starts |= {"study_config": _SHARED_START, "credit_fit": _SHARED_START}
    starts["rl_round"] = _short(statistics.median(_starts(folders, "rl_round", "rl", _trained_s)))
    evaluations = statistics.median(_starts(folders, "evaluate", "eval", _evaluated_s))
    starts["evaluate"] = _short(evaluations + _LOADS)
    fits = [
        (made["seconds"] - _SHARED_START, replay(recorded_study(folder), made["job"]["method"]))
        for folder in folders
        for made in _made(folder, "credit_fit")
    ]
    each = {"credit_fit": _short(_ratio(fits))}
    for stage in _PAGES:
        points = [
            (len(runs(recorded_study(folder))), _seconds(folder, stage))
            for folder in folders
            if _made(folder, stage)
        ]
        counts, seconds = zip(*points, strict=True)
        slope = max(0.0, float(np.polyfit(counts, seconds, 1)[0])) if len(set(counts)) > 1 else 0.0
        each[stage] = _short(slope)
        starts[stage] = _short(
            max(0.5, statistics.fmean(seconds) - slope * statistics.fmean(counts))
        )
    weights = {stage: _bytes(folders, stage) for stage in _WEIGHED}
    return {"starts": starts, "each": each, "bytes": weights | {"fetch_assets": 1000.0}}


def _tasks(study: Study) -> float:
    return sum(size or 0 for size in study.env.panels.sizes.values())


_WEIGHED = {
    "assets": lambda study, arm: _tasks(study),
    "expert": lambda study, arm: study.env.expert.trajectories,
    "credit_fit": replay,
    "evaluate": episodes,
    **{stage: lambda study, arm: len(runs(study)) for stage in ("study_config", *_PAGES)},
}


def _bytes(folders: Sequence[Path], stage: str) -> float:
    """Bytes per unit of a stage's work, as a mean over the runs."""
    pairs = []
    for folder in folders:
        study = recorded_study(folder)
        for made in _made(folder, stage):
            pairs.append((made["bytes"], _WEIGHED[stage](study, made["job"]["method"])))
    return _short(_ratio(pairs))


def _starts(folders, stage, root, inside) -> Iterator[float]:
    for folder in folders:
        for made in _made(folder, stage):
            home = folder / round_folder(root, *made["job"].values())
            yield max(0.0, made["seconds"] - inside(home))


def _evaluated_s(home: Path) -> float:
    return _json(home / "summary.json")["elapsed_s"]


def _trained_s(home: Path) -> float:
    return sum(row["elapsed_s"] for row in _json(home / "train_log.json")["rows"])


def _made(folder: Path, stage: str) -> list[dict]:
    """The records of a stage's jobs."""
    return [made for made in linked_jobs(folder) if made["stage"] == stage]


def _seconds(folder: Path, stage: str) -> float:
    """Duration in seconds of the only job of a stage."""
    return _made(folder, stage)[0]["seconds"]


def _json(path: Path) -> dict:
    return json.loads(path.read_bytes())


def _short(value: float) -> float:
    return value if isinstance(value, bool) else float(f"{value:.3g}")


if __name__ == "__main__":
    run(main)
