"""Tables and figures of a comparison of credit assigners."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from hgrpo.evaluation.credit_correlation import check_row, correlations
from hgrpo.evaluation.shared_rollouts import Computation, SharedRollouts
from hgrpo.evaluation.truth.measured import TRUTH, TRUTH_LABEL, Played
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.evaluation.twins import twins
from hgrpo.report.csv_file import write_csv
from hgrpo.report.figures import credit_correlation as figures
from hgrpo.report.figures import credit_truth
from hgrpo.report.style import Drawing, save_all
from hgrpo.trajectories.store import write_table

CREDITS = pa.schema(
    {"round": "int32", "step": "int32", "task_id": "string", "rollout": "int32", "turn": "int32"}
    | {"method": "string", "credit": "float64"}
)
_DIGITS = "%.6g"


def write(
    played: Sequence[Played],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
    folder: Path,
) -> pd.DataFrame:
    """Write all tables and figures into `folder`, and return the table from `twins`.

    Files are byte-identical for equal credit. The heat map and the gallery show the last policy's
    rollouts.

    Args:
        played: rollouts of one or several policies, with the credit that was computed for them.
        updates: settings of each method's advantages; `twins` excludes methods without settings.
        labels: the label of each method, in display order.
    """
    parts = [credit_table(_by_method(each.plan, labels), each.rollouts) for each in played]
    write_table(pa.concat_tables(parts), folder / "credits.parquet")
    plan, rollouts, truth = played[-1].plan, played[-1].rollouts, played[-1].truth
    write_csv(check_table(plan, rollouts, labels), folder / "checks.csv", _DIGITS)
    distinct = {c.methods[0]: c.values for c in plan if c.values is not None}
    pairs = correlations(distinct, rollouts.lengths)
    write_csv(pairs, folder / "correlations.csv", _DIGITS)
    drawn = [_heat_map(pairs, plan, distinct, labels)]
    columns = distinct if truth is None else {TRUTH: truth.advantage} | distinct
    drawn.append(_gallery(columns, rollouts, {TRUTH: TRUTH_LABEL} | labels))
    if truth is not None:
        drawn += _write_truth(played, updates, labels, folder)
    save_all(drawn, folder)
    pairs = twins([_advantages(each, updates, labels) for each in played], updates, labels)
    write_csv(pairs, folder / "twins.csv", _DIGITS)
    return pairs


def _write_truth(
    played: Sequence[Played],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
    folder: Path,
) -> list[Drawing]:
    # This import is local, because it loads torch, which some computations of credit do not need.
    from hgrpo.evaluation.truth.methods import truth_tables

    parts = [truth_tables(each, updates, labels) for each in played]
    tables = {
        name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]
    }
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv", _DIGITS)
    last = played[-1].rollouts.stored[0].round
    gradients, errors = (
        tables[name][tables[name]["round"] == last] for name in ("truth_gradients", "truth_errors")
    )
    return [
        credit_truth.closest(tables["truth"]),
        credit_truth.updates(gradients),
        credit_truth.mistakes(errors),
    ]


def _advantages(
    played: Played, updates: Mapping[str, ArmUpdate], labels: Mapping[str, str]
) -> dict[str, np.ndarray]:
    # This import is local, because it loads torch, which some computations of credit do not need.
    from hgrpo.evaluation.truth.update import update_advantages

    named, credits = played.rollouts.named, _by_method(played.plan, labels)
    known = {name: credit for name, credit in credits.items() if name in updates}
    return {name: update_advantages(row, named, updates[name]) for name, row in known.items()}


def _by_method(plan: Sequence[Computation], labels: Mapping[str, str]) -> dict[str, np.ndarray]:
    by_name = {name: c.values for c in plan for name in c.methods if c.values is not None}
    return {name: by_name[name] for name in labels if name in by_name}


def credit_table(credits: Mapping[str, np.ndarray], rollouts: SharedRollouts) -> pa.Table:
    """One row per method and credited turn, with the columns of `CREDITS`."""
    lengths, trajectories = rollouts.lengths, rollouts.trajectories
    turns = {
        "round": [rollouts.stored[0].round] * int(lengths.sum()),
        "step": np.repeat(rollouts.steps, lengths),
        "task_id": np.repeat([t.task.task_id for t in trajectories], lengths),
        "rollout": np.repeat([t.rollout for t in trajectories], lengths),
        "turn": np.concatenate([np.arange(length) for length in lengths]),
    }
    parts = []
    for name, credit in credits.items():
        rows = pa.table({**turns, "method": [name] * len(credit), "credit": credit})
        parts.append(rows.cast(CREDITS).filter(np.isfinite(credit)))
    return pa.concat_tables(parts) if parts else CREDITS.empty_table()


def check_table(
    plan: Sequence[Computation], rollouts: SharedRollouts, labels: Mapping[str, str]
) -> pd.DataFrame:
    """One row per method: the result of `check_row`, the number of fallbacks, and a note."""
    rows = {}
    nothing = np.full(rollouts.lengths.sum(), np.nan)
    for computed in plan:
        expected = rollouts.sums(computed.sums_to) if computed.sums_to else None
        values = nothing if computed.values is None else computed.values
        row = check_row(values, expected, rollouts.lengths)
        for name in computed.methods:
            rows[name] = {
                "method": name,
                "label": labels[name],
                "kind": computed.credit.kind,
                "same_as": computed.methods[0] if name != computed.methods[0] else "",
                **row,
                "sums_to": computed.sums_to,
                "fallbacks": computed.fallbacks,
                "note": computed.note,
            }
    return pd.DataFrame([rows[name] for name in labels])


def _heat_map(
    pairs: pd.DataFrame,
    plan: Sequence[Computation],
    credits: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
) -> Drawing:
    varied = [name for name, credit in credits.items() if np.nanmin(credit) < np.nanmax(credit)]
    constant = [labels[name] for name in credits if name not in varied]
    remarks = []
    if constant:
        remarks.append(f"Omitted because their credit does not vary: {', '.join(constant)}.")
    for computed in plan:
        first, *others = (labels[name] for name in computed.methods)
        if others and computed.methods[0] in varied:
            remarks.append(f"{first} also represents {', '.join(others)}.")
        if computed.note:
            remarks.append(f"{first}: {computed.note}.")
    return figures.heat_map(pairs, {name: labels[name] for name in varied}, remarks)


def _gallery(
    credits: Mapping[str, np.ndarray], rollouts: SharedRollouts, labels: Mapping[str, str]
) -> Drawing:
    # The array of zeros is needed if `credits` is empty. All trajectories are then complete.
    known = np.isfinite([np.zeros(rollouts.lengths.sum()), *credits.values()]).all(axis=0)
    complete = [bool(part.all()) for part in np.split(known, np.cumsum(rollouts.lengths)[:-1])]
    returns = rollouts.sums("return")
    picked = figures.pick(rollouts.lengths.tolist(), returns, rollouts.groups, complete)
    table = figures.gallery_table(picked, rollouts.trajectories, rollouts.steps, credits)
    drawn = figures.gallery(table, {name: labels[name] for name in credits})
    if TRUTH not in credits:
        return drawn
    remark = "The first column is the true advantage of each turn."
    return replace(drawn, caption=f"{drawn.caption} {remark}")
