"""Read training logs and tables of turns; the path of a file identifies its run."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hgrpo.errors import UserError
from hgrpo.trajectories import store
from hgrpo.trajectories.log_row import ALL_PLAY, from_row

RUN = re.compile(r"(?P<method>[^/]+)/seed_(?P<seed>\d+)/round_(?P<round>\d+)/[^/]+$")
# Every log must have the required columns. Missing optional columns are NaN.
REQUIRED = ("step", "mean_reward", "std_reward", "n_trajectories", "elapsed_s")
OPTIONAL = (
    *("success_rate", "n_groups", "dead_groups", "n_turns", "n_forward_tokens", "n_action_tokens"),
    *("inadmissible", "overlong", "empty", "truncated", "context_overflow"),
    *("observed_kl", "kl_coef", "grad_norm", "entropy", "clip_fraction", "ess", "mismatch_max"),
    *("filter_kept_groups", "filter_kept_mass"),
    *("mean_abs_turn_adv", "mean_abs_token_adv", "collect_s", "credit_s", "update_s"),
    # Credit assigners log these columns on TurnRD's weights, on continuations and on judge calls.
    *("alpha_var", "alpha_entropy_ratio", "alpha_progress_corr", "cls_query_norm"),
    *("cf_branches", "cf_replies", "cf_tokens"),
    *("judge_calls", "judge_cache_hits", "judge_fallbacks"),
    *("judge_input_tokens", "judge_output_tokens", "judge_dollars", "judge_dollars_unconfirmed"),
)
# Maps each running sum over a run to the columns that it adds up. `read_logs` computes `fit_s`.
SUMS = {**ALL_PLAY, "seconds": ("elapsed_s", "fit_s")}
# `TRAJECTORY` identifies a trajectory within a training step. `TURN_COLUMNS` are the columns shown
# in credit plots.
TRAJECTORY = ["task_id", "rollout"]
TURN_COLUMNS = [
    *TRAJECTORY,
    *("turn", "observation", "action", "env_reward", "admissible"),
    *("credit", "advantage", "progress"),
]
FIT_REQUIRED = ("epoch", "validation_loss")
FIT_OPTIONAL = ("return_corr", "alpha_cf_corr", "supervised_share")


def run_of(path: Path) -> tuple[str, int, int]:
    """Parse the path <method>/seed_<s>/round_<r>/<file>; raise a UserError for any other path."""
    match = RUN.search(Path(path).as_posix())
    if not match:
        raise UserError(f"{path}: expected a file in <method>/seed_<s>/round_<r>/")
    return match["method"], int(match["seed"]), int(match["round"])


def read_logs(paths: Sequence[Path], fits: Sequence[Path] = ()) -> pd.DataFrame:
    """Read all training logs into one table, one row per optimiser batch of every run.

    The following columns are added:
        batch: number of the batch in its run, counted from 1 over all rounds.
        fit_s: seconds of the fit before a round, only in the row of the round's first batch.
        trajectories, replies, tokens, seconds: cumulative sums over the run, including
            continuations (`hgrpo.trajectories.log_row`).

    Args:
        paths: train_log.json of every round.
        fits: train_log.json of every fit.

    Raises:
        UserError: a log is missing, invalid, incomplete or duplicated, or has another path than
            `run_of` requires, or an earlier round of the run has no log.
    """
    runs = {run_of(path) for path in paths}
    for method, seed, number in sorted(runs):
        if number > 1 and (method, seed, number - 1) not in runs:
            raise UserError(f"{method} seed {seed}: the train log of round {number - 1} is missing")
    table = _read_all(paths, REQUIRED, OPTIONAL)
    if table.empty:
        return table.reindex(columns=[*table.columns, "batch", "fit_s", *SUMS])
    table = table.sort_values(["method", "seed", "round", "step"], ignore_index=True)
    runs = table.groupby(["method", "seed"])
    table["batch"] = runs.cumcount() + 1
    fitted = {run_of(path): _entry(path, "elapsed_s", float) for path in fits}
    before = zip(table["method"], table["seed"], table["round"] - 1, strict=True)
    spent = pd.Series([fitted.get(run, float("nan")) for run in before], dtype=float)
    table["fit_s"] = spent.where(table["step"] == table["step"].min())
    for name, columns in SUMS.items():
        spent = table[list(columns)].sum(axis=1, min_count=1)
        table[name] = spent.groupby([table["method"], table["seed"]]).cumsum()
    return table


def read_stops(paths: Sequence[Path]) -> pd.DataFrame:
    """Read which runs were ended by a stopping rule, one row per run.

    Columns: method, seed, status, rule, round, step. The status is `stopped` if the run failed, and
    `solved` if it succeeded. The step is missing if the run ended between two rounds.

    Args:
        paths: train_log.json of every round.
    """
    ended = {}
    for path in paths:
        method, seed, _ = run_of(path)
        end = json.loads(path.read_bytes()).get("ended", {})
        if end.get("rule"):
            ended[method, seed] = {"method": method, "seed": seed, **end}
    rows = [ended[run] for run in sorted(ended)]
    table = pd.DataFrame(rows, columns=["method", "seed", "status", "rule", "round", "step"])
    return table.astype(dict.fromkeys(["method", "status", "rule"], "str"))


def read_collapse(paths: Sequence[Path]) -> pd.DataFrame:
    """Dependence of replies on prompts, before a run's first update and at the ends of rounds.

    The columns are method, seed, round, step, turn (`first_turn` or `any_turn`), and the metrics in
    the round's summary.json. There is one row per measured step and value of `turn`.

    Args:
        paths: train_log.json of every round.

    Raises:
        UserError: a log is missing or invalid.
    """
    keys = ["method", "seed", "round", "step", "turn"]
    rows = []
    for path in paths:
        of_round = dict(zip(keys, run_of(path), strict=False))
        for row in _entry(path, "rows", list):
            for turn, numbers in from_row(row).items():
                rows.append({**of_round, "step": row["step"], "turn": turn, **numbers})
    return pd.DataFrame(rows, columns=None if rows else keys).sort_values(
        keys[:4], kind="stable", ignore_index=True
    )


def play_by_round(logs: pd.DataFrame, stops: pd.DataFrame | None = None) -> pd.DataFrame:
    """Cumulative `SUMS` of each run at the end of each round, with columns method, seed and round.

    Runs in `stops` (`read_stops`) keep their last values in later rounds.

    Args:
        logs: from `read_logs`.
    """
    keys = ["method", "seed", "round"]
    played = logs.groupby(keys)[list(SUMS)].last()
    if stops is not None and len(stops):
        rounds = range(1, int(logs["round"].max()) + 1)
        of_ended = [
            (method, seed, number)
            for method, seed in stops[["method", "seed"]].itertuples(index=False)
            for number in rounds
        ]
        every = played.index.union(pd.MultiIndex.from_tuples(of_ended, names=keys))
        # The sums are 0 for a run that was stopped before its first step.
        played = played.reindex(every).groupby(level=keys[:2]).ffill().fillna(0)
    return played.reset_index()


def read_fits(paths: Sequence[Path]) -> pd.DataFrame:
    """Logs of the fits, with one row for each initial model and one for each epoch.

    UserError if a log is missing, invalid, incomplete or duplicated.
    """
    table = _read_all(paths, FIT_REQUIRED, FIT_OPTIONAL)
    return table.sort_values(["method", "seed", "round", "epoch"], ignore_index=True)


def read_first_turns(paths: Sequence[Path]) -> dict[str, pd.DataFrame]:
    """Turns of each method's first batch in the first round, with `TURN_COLUMNS` and `goal`.

    The turns are from the lowest seed that has this round for every method. All arms start from the
    same policy, so arms with the same random streams have the same turns here and differ only in
    credit and advantage.

    Args:
        paths: turns.parquet of the rounds. sequences.parquet in the same folders is also read.

    Raises:
        UserError: a file is unreadable, the two files of a round disagree, or no seed has the first
            round for every method.
    """
    runs = {run_of(path): path for path in paths}
    if not runs:
        return {}
    first = min(number for _, _, number in runs)
    methods = list(dict.fromkeys(method for method, _, number in runs if number == first))
    for seed in sorted({seed for _, seed, _ in runs}):
        shared = {method: runs.get((method, seed, first)) for method in methods}
        if None not in shared.values():
            return {method: _first_batch(path) for method, path in shared.items()}
    raise UserError(f"turns: no seed has round {first} for all of the methods {', '.join(methods)}")


def read_last_turns(paths: Sequence[Path], methods: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Turns of the first batch of each method's last round, from the lowest seed with this round.

    Methods whose only round in `paths` is the first are omitted. Arguments, columns and errors are
    as in `read_first_turns`, with an additional column `round`.
    """
    turns = {}
    runs = {run_of(path): path for path in paths}
    for method in methods:
        mine = [(number, -seed) for name, seed, number in runs if name == method and number > 1]
        if mine:
            number, seed = max(mine)
            turns[method] = _first_batch(runs[method, -seed, number]).assign(round=number)
    return turns


def last_day(paths: Sequence[Path]) -> str:
    """Date (UTC) at which the last round ended, from the rounds' logs; "" if not logged."""
    ends = [json.loads(Path(path).read_bytes()).get("finished", "") for path in paths]
    return max(ends, default="")[:10]


def _first_batch(path: Path) -> pd.DataFrame:
    turns = store.read_turns(path, TURN_COLUMNS, step=0).to_pandas()
    sequences = Path(path).with_name(store.SEQUENCES_FILE)
    goals = store.read_sequences(sequences, [*TRAJECTORY, "goal"], step=0).to_pandas()
    joined = turns.merge(goals.drop_duplicates(TRAJECTORY), "left", TRAJECTORY)
    if joined["goal"].isna().any():
        raise UserError(f"{path}: turns do not match {sequences.name} in the same folder")
    return joined


def _read_all(
    paths: Sequence[Path], required: Sequence[str], optional: Sequence[str]
) -> pd.DataFrame:
    tables = []
    seen: dict[tuple[str, int, int], Path] = {}
    for path in paths:
        run = method, seed, number = run_of(path)
        if run in seen:
            raise UserError(f"{path}: {seen[run]} is a log of the same round; pass only one")
        seen[run] = path
        rows = _entry(path, "rows", list)
        table = pd.DataFrame(rows, columns=None if rows else list(required))
        if lacking := [name for name in required if name not in table.columns]:
            raise UserError(f"{path}: missing columns: {', '.join(lacking)}")
        table = table.reindex(columns=[*required, *optional]).apply(pd.to_numeric)
        # Rounds after the end of a stopped run have no rows. Skip them, because concatenating an
        # empty table would change column types.
        if rows:
            tables.append(table.assign(method=method, seed=seed, round=number))
    if not tables:
        return pd.DataFrame(columns=["method", "seed", "round", *required, *optional])
    return pd.concat(tables, ignore_index=True)


def _entry(path: Path, key: str, kind: type[list] | type[float]) -> list | float:
    try:
        return kind(json.loads(Path(path).read_bytes())[key])
    except FileNotFoundError:
        raise UserError(f"{path}: train log not found") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: expected a train log with the key {key!r} ({error})") from None
