"""Page for browsing single trajectories with every arm's credit.

The page contains its data, so it can be opened as a local file. A trajectory that several arms
played, as in the first batch of training, has one entry with a column of values for each arm.
"""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from markupsafe import Markup

from hgrpo import parquet
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.table import TRUTH_FILE, read_truth_table
from hgrpo.report.svg import page_environment
from hgrpo.trajectories import store

CREDITS_FILE = "credits.parquet"
# These fields may differ between arms, even if the arms played the same trajectory.
OF_ARM = ("credit", "advantage", "logprob")
ALL_ARMS = ""
_KEY = ["step", "task_id", "rollout"]
_SEQUENCES = (
    *(*_KEY, "task_type", "goal", "env_return", "success", "truncated"),
    *("behaviour_logprobs", "spans", "final_observation"),
)
_TURNS = (*_KEY, "turn", "observation", "action", "admissible", "env_reward", "progress")
_CREDITED = ("credit", "advantage")
_CREDITS = ("round", *_KEY, "turn", "method", "credit")


@dataclass(frozen=True)
class Source:
    """Tables of a round, with its arm and seed."""

    method: str
    seed: int
    round: int
    turns: Path


def collect(sources: Sequence[Source], limit: int) -> list[dict]:
    """The first trajectories of every round, at most `limit` in total.

    Every round contributes the same number, so that arms are comparable. If there are more rounds
    than `limit`, the rounds of the last seeds are omitted. Trajectories of a seed and round with
    the same task, rollout and actions are merged into one entry. Entries of the same task are
    adjacent.

    Raises:
        UserError: a table is missing, damaged or incomplete, or the two tables of a round disagree.
    """
    chosen = sorted(sources, key=lambda source: (source.seed, source.round))[:limit]
    each = limit // max(1, len(chosen))
    merged: dict[tuple, dict] = {}
    for source in chosen:
        for rank, entry in enumerate(itertools.islice(_entries(source), each)):
            actions = tuple(turn["action"] for turn in entry["turns"])
            key = (source.seed, source.round, entry["task"], entry["rollout"], actions)
            shared = merged.setdefault(key, entry | {name: {} for name in OF_ARM} | {"rank": rank})
            for name in OF_ARM:
                shared[name][source.method] = entry[name]
    for entry in merged.values():
        entry["logprob"] = _shared(entry["logprob"])
    return sorted(merged.values(), key=lambda one: (one["seed"], one["round"], one["rank"]))


def _shared(values: Mapping[str, list]) -> Mapping[str, list]:
    """Values by arm, or under the single key `ALL_ARMS` if all arms have equal values."""
    first, *others = values.values()
    return values if any(other != first for other in others) else {ALL_ARMS: first}


def _entries(source: Source) -> Iterator[dict]:
    for step in itertools.count():
        sequences = store.read_sequences(
            source.turns.with_name(store.SEQUENCES_FILE), _SEQUENCES, step
        )
        if not len(sequences):
            return
        turns = store.read_turns(source.turns, (*_TURNS, *_CREDITED), step).to_pandas()
        for row, mine in _with_turns(sequences, turns, source.turns):
            yield _entry(row, mine, source.seed, source.round) | {
                **{name: _numbers(mine[name]) for name in _CREDITED},
                "logprob": _logprobs(row),
            }


def _with_turns(
    sequences: pa.Table, turns: pd.DataFrame, path: Path
) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Yield each trajectory with its turns; error messages name `path`, the file of the turns."""
    played = dict(iter(turns.groupby(_KEY, sort=False)))
    for row in sequences.to_pylist():
        mine = played.get(tuple(row[name] for name in _KEY))
        if mine is None or len(mine) != len(row["spans"]):
            raise UserError(
                f"{path}: turns of task {row['task_id']} do not match those of "
                f"{store.SEQUENCES_FILE} in the same folder"
            )
        yield row, mine


def _entry(row: Mapping, turns: pd.DataFrame, seed: int, number: int) -> dict:
    return {
        "seed": seed,
        "round": number,
        "task": row["task_id"],
        "type": row["task_type"],
        "rollout": row["rollout"],
        "goal": row["goal"],
        "return": _number(row["env_return"]),
        "outcome": "success" if row["success"] else "cut off" if row["truncated"] else "failure",
        "final": row["final_observation"] or "",
        "truth": None,
        "turns": [
            {
                "observation": turn.observation,
                "action": turn.action,
                "admissible": bool(turn.admissible),
                "reward": _number(turn.env_reward),
                "progress": _number(turn.progress),
            }
            for turn in turns.itertuples()
        ],
    }


def _logprobs(row: Mapping) -> list[float | None]:
    ends = np.cumsum([end - start for start, end in row["spans"]])
    sampled = np.asarray(row["behaviour_logprobs"], float)
    return _numbers(part.sum() for part in np.split(sampled, ends[:-1]))


def collect_truth(
    folder: Path, agreement: Path, methods: Iterable[str], seed: int, number: int, limit: int
) -> list[dict]:
    """The first trajectories with ground-truth credit, together with each method's credit.

    Args:
        folder: truth/round_<r>, output of the stage `truth_round`.
        agreement: output folder of `credit_agreement`.
        methods: the methods to show.
        seed: the study's first seed.
        number: the round r.
        limit: maximum number of trajectories.

    Raises:
        UserError: a table is missing, damaged or incomplete, or tables disagree.
    """
    sequences = store.read_sequences(folder / store.SEQUENCES_FILE, _SEQUENCES).slice(0, limit)
    turns = store.read_turns(folder / store.TURNS_FILE, _TURNS).to_pandas()
    of_turn = [*_KEY, "turn"]
    truth = read_truth_table(folder / TRUTH_FILE).select([*of_turn, "advantage"]).to_pandas()
    credits = parquet.read(agreement / CREDITS_FILE, _CREDITS).to_pandas()
    credits = credits[(credits["round"] == number) & credits["method"].isin(list(methods))]
    wide = credits.pivot(index=of_turn, columns="method", values="credit")
    joined = turns.merge(truth, "left", of_turn)
    joined = joined.merge(wide, "left", left_on=of_turn, right_index=True)
    return [
        _entry(row, mine, seed, number)
        | {"truth": _numbers(mine["advantage"]), "advantage": {}, "rank": rank}
        | {"logprob": {ALL_ARMS: _logprobs(row)}}
        | {"credit": {name: _numbers(mine[name]) for name in wide if mine[name].notna().any()}}
        for rank, (row, mine) in enumerate(
            _with_turns(sequences, joined, folder / store.TURNS_FILE)
        )
    ]


def within(entries: Sequence[dict], most: int) -> list[dict]:
    """Drop the last entries of every round until the rest takes at most `most` bytes."""
    by_rank = sorted(range(len(entries)), key=lambda index: entries[index]["rank"])
    sizes = itertools.accumulate(len(_json(entries[index]).encode()) for index in by_rank)
    fitting = {index for index, size in zip(by_rank, sizes, strict=True) if size <= most}
    return [entry for index, entry in enumerate(entries) if index in fitting]


def _number(value: float | None) -> float | None:
    """Round to four digits; None if missing or not finite, because JSON has no NaN."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")


def _numbers(values: Iterable[float | None]) -> list[float | None]:
    return [_number(value) for value in values]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def render(study: str, entries: Sequence[Mapping], labels: Mapping[str, str]) -> str:
    """Render the page as HTML, deterministically.

    Args:
        labels: the label of each method, in display order.
    """
    environment = page_environment()
    public = [{name: value for name, value in one.items() if name != "rank"} for one in entries]
    data = _json({"labels": dict(labels), "trajectories": public})
    # Texts of games may contain "</script>" or JavaScript line separators.
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return environment.get_template("viewer.html.j2").render(study=study, data=Markup(safe))
