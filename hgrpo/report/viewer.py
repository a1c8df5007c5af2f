"""Collects single trajectories with every arm's credit, and writes the page that shows them.

The page holds its data, so it opens from a file. Arms that played the same trajectory, as all do in
the first batch of training, share one entry with a column of values for each arm.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from hgrpo import parquet
from hgrpo.errors import UserError
from hgrpo.trajectories import store

_OF_TRAJECTORY = ("task_id", "rollout")
_SEQUENCES = (
    *(*_OF_TRAJECTORY, "task_type", "goal", "env_return", "success", "truncated"),
    *("behaviour_logprobs", "spans", "final_observation"),
)
_TURNS = (
    *(*_OF_TRAJECTORY, "turn", "observation", "action", "admissible", "env_reward", "progress"),
    *("credit", "advantage"),
)
_DIGITS = 4


@dataclass(frozen=True)
class Source:
    """A round's tables and who played it."""

    method: str
    seed: int
    round: int
    turns: Path


def collect(sources: Sequence[Source], limit: int) -> list[dict]:
    """The first trajectories of every round's first batch, at most `limit` of all rounds together.

    Every round gives the same number, so that arms can be compared. Trajectories of the same seed
    and round with the same task, rollout and actions are one entry.

    Raises:
        UserError: a table is missing, damaged or lacks a column.
    """
    each = max(1, limit // max(1, len(sources)))
    merged: dict[tuple, dict] = {}
    for source in sources:
        for entry in _entries(source, each):
            actions = tuple(turn["action"] for turn in entry["turns"])
            key = (entry["seed"], entry["round"], entry["task"], entry["rollout"], actions)
            kept = merged.setdefault(key, entry | {"credit": {}, "advantage": {}})
            for name in ("credit", "advantage"):
                kept[name][source.method] = entry[name]
    return list(merged.values())


def _entries(source: Source, number: int) -> Iterable[dict]:
    sequences = store.read_sequences(
        source.turns.with_name(store.SEQUENCES_FILE), _SEQUENCES, step=0
    )
    turns = store.read_turns(source.turns, _TURNS, step=0).to_pandas()
    played = dict(iter(turns.groupby(list(_OF_TRAJECTORY), sort=False)))
    for row in sequences.slice(0, number).to_pylist():
        own = played.get((row["task_id"], row["rollout"]))
        if own is None:
            raise UserError(f"{source.turns}: no turns of task {row['task_id']}")
        yield _entry(row, own, source.seed, source.round) | {
            "credit": _rounded(own["credit"]),
            "advantage": _rounded(own["advantage"]),
        }


def _entry(row: Mapping, turns: pd.DataFrame, seed: int, number: int) -> dict:
    """What all arms that played a trajectory share."""
    ends = np.cumsum([end - start for start, end in row["spans"]])
    sampled = np.asarray(row["behaviour_logprobs"], float)
    logprobs = [part.sum() for part in np.split(sampled, ends[:-1])]
    return {
        "seed": seed,
        "round": number,
        "task": row["task_id"],
        "type": row["task_type"],
        "rollout": row["rollout"],
        "goal": row["goal"],
        "return": row["env_return"],
        "outcome": "success" if row["success"] else "cut off" if row["truncated"] else "failure",
        "final": row["final_observation"] or "",
        "logprob": _rounded(logprobs),
        "truth": None,
        "turns": [
            {
                "observation": turn.observation,
                "action": turn.action,
                "admissible": bool(turn.admissible),
                "reward": round(turn.env_reward, _DIGITS),
                "progress": round(turn.progress, _DIGITS),
            }
            for turn in turns.itertuples()
        ],
    }


def collect_truth(folder: Path, agreement: Path, seed: int, number: int, limit: int) -> list[dict]:
    """The first trajectories of a measured truth, with every method's credit of them.

    Args:
        folder: truth/round_<r>, written by the stage `truth_round`.
        agreement: the folder that `credit_agreement` wrote.
        seed: the study's first seed.
        number: r.
        limit: most trajectories.
    """
    sequences = store.read_sequences(folder / store.SEQUENCES_FILE, ("step", *_SEQUENCES))
    turns = store.read_turns(folder / store.TURNS_FILE, ("step", *_TURNS[:-2])).to_pandas()
    truth = pq.read_table(folder / "truth.parquet", **parquet.READ).to_pandas()
    credits = pq.read_table(agreement / "credits.parquet", **parquet.READ).to_pandas()
    credits = credits[credits["round"] == number]
    key = ["step", *_OF_TRAJECTORY]
    of_turn = [*key, "turn"]
    wide = credits.pivot(index=of_turn, columns="method", values="credit")
    joined = turns.merge(truth[[*of_turn, "advantage"]], "left", of_turn)
    joined = joined.merge(wide, "left", left_on=of_turn, right_index=True)
    played = dict(iter(joined.groupby(key, sort=False)))
    entries = []
    for row in sequences.slice(0, limit).to_pylist():
        own = played[row["step"], row["task_id"], row["rollout"]]
        shown = _entry(row, own, seed, number)
        known = [name for name in wide.columns if own[name].notna().all()]
        entries.append(
            shown
            | {"truth": _rounded(own["advantage"]), "advantage": {}}
            | {"credit": {name: _rounded(own[name]) for name in known}}
        )
    return entries


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    """Numbers with few digits; None for a missing one."""
    return [
        None if value is None or pd.isna(value) else round(float(value), _DIGITS)
        for value in values
    ]


def render(study: str, entries: Sequence[Mapping], labels: Mapping[str, str]) -> str:
    """The page as HTML text; the same entries give the same text.

    Args:
        labels: method -> label, in display order.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hgrpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    data = json.dumps(
        {"labels": dict(labels), "trajectories": list(entries)},
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
    )
    # Texts of games may hold "</script>" or a line separator that JavaScript would end a line at.
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return environment.get_template("viewer.html.j2").render(study=study, data=safe)
