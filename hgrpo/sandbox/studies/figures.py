"""Draws a study's figures: curves (mean, band and individual seeds), and one point per arm."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hgrpo.atomic import atomic_folder
from hgrpo.errors import UserError, did_you_mean
from hgrpo.evaluation.over_seeds import seed_interval
from hgrpo.report.arms import COLOURS, LINES, MARKERS, REFERENCE_COLOUR
from hgrpo.report.style import Drawing, canvas, legend_below, log_axis, save_all
from hgrpo.sandbox.studies.results import read_rows
from hgrpo.sandbox.studies.study import FigureSpec, SandboxStudy

_PALETTE = (REFERENCE_COLOUR, *COLOURS)
_PANEL = 1.75  # height of one panel in inches
# Columns of a figure's table of curves.
_CURVE = ["panel", "arm", "seed", "x", "value"]
_LAST = "Values are the last logged ones of each seed."
# Quantity averaged in a point.
_TAKEN = {"end": "the last values of all seeds", "mean": "evaluations and seeds"}
_BAND = (
    "Bands are the mean plus and minus its standard error over seeds, per evaluation; thin lines "
    "are individual seeds."
)


@dataclass(frozen=True)
class ArmRows:
    """An arm's rows, and its settings for figures."""

    rows: pd.DataFrame
    settings: Mapping[str, object]


def drawings(study: str, specs: list[FigureSpec], arms: Mapping[str, ArmRows]) -> Iterator[Drawing]:
    """Draw all figures of the study.

    Raises:
        UserError: a figure shows a column that none of its arms logs.
    """
    for spec in specs:
        figure_arms = {name: arms[name] for name in spec.arms or arms}
        draw = _points if spec.kind == "points" else _curves
        yield draw(study, spec, figure_arms)


def _curves(study: str, spec: FigureSpec, arms: Mapping[str, ArmRows]) -> Drawing:
    figure, axes = _canvas(spec)
    numbered, parts = spec.kind == "numbered", []
    for ax, panel in zip(axes, spec.panels, strict=True):
        needed = [f"{panel}_0"] if numbered else [spec.x, panel]
        _check(needed, spec, arms)
        for index, (label, arm) in enumerate(arms.items()):
            if {*needed} <= {*arm.rows}:
                seeds = _numbered(arm.rows, panel) if numbered else _run(arm.rows, spec.x, panel)
                _curve(ax, seeds, *_look(index))
                parts.append(seeds.assign(panel=panel, arm=label)[_CURVE])
        _finish(ax, spec, panel)
    axes[-1].set_xlabel(_words(spec.x))
    lines = [_key(label, *_look(index)[:2]) for index, label in enumerate(arms)]
    legend_below(figure, lines)
    caption = f"{_LAST} {_BAND}" if numbered else _BAND
    return _drawing(study, spec, figure, pd.concat(parts, ignore_index=True), caption)


def _run(rows: pd.DataFrame, x: str, column: str) -> pd.DataFrame:
    """Points of a curve over a run. A row is an evaluation of one seed that logs `x` and `column`.

    The columns are seed, place (index of the evaluation within the seed), x and value.
    """
    points = pd.DataFrame({"seed": rows["seed"], "x": rows[x], "value": rows[column]})
    return points.assign(place=rows.groupby("seed", sort=False).cumcount()).dropna()


def _numbered(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Points of a curve through the last values of the columns `name`_0, `name`_1, ...

    The columns are seed, place, x and value. Both place and x are the number N in `name`_N.
    """
    columns = [column for column in rows if re.fullmatch(rf"{re.escape(name)}_\d+", column)]
    numbers = {column: int(column.rpartition("_")[2]) for column in columns}
    last = rows.groupby("seed", sort=False)[columns].last().rename(columns=numbers)
    long = last.sort_index(axis=1).melt(ignore_index=False, var_name="x", value_name="value")
    long = long.reset_index().dropna().astype({"x": int})
    return long.assign(place=long["x"])


def _curve(ax: Axes, seeds: pd.DataFrame, colour: str, line: str, marker: str) -> None:
    for _, points in seeds.groupby("seed", sort=False):
        ax.plot(
            points["x"], points["value"], color=colour, linestyle=line, linewidth=0.5, alpha=0.35
        )
    mean, error = _over_seeds(seeds)
    ax.fill_between(mean.index, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    ax.plot(mean.index, mean, color=colour, linestyle=line)


def _over_seeds(seeds: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Mean and standard error over seeds at each place. The index is the mean of x over seeds."""
    at = seeds.groupby("place")
    mean, error = at["value"].mean(), at["value"].sem().fillna(0.0)
    x = at["x"].mean()
    return mean.set_axis(x), error.set_axis(x)


def _points(study: str, spec: FigureSpec, arms: Mapping[str, ArmRows]) -> Drawing:
    figure, axes = _canvas(spec)
    lines = list(dict.fromkeys(_line(label) for label in arms))
    parts = []
    for ax, column in zip(axes, spec.panels, strict=True):
        _check([column, *([spec.across] if spec.across else [])], spec, arms)
        table = pd.DataFrame(
            [_point(label, arm, spec, column) for label, arm in arms.items() if column in arm.rows]
        ).dropna(subset=["x", "value"])
        for name, points in table.groupby("line", sort=False):
            colour, line, marker = _look(lines.index(name))
            ends = np.abs(points[["lower", "upper"]].to_numpy().T - points["value"].to_numpy())
            ends = np.where(np.isfinite(ends), ends, 0.0)
            look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5}
            ax.errorbar(points["x"], points["value"], yerr=ends, elinewidth=1, **look)
        parts.append(table.assign(panel=column))
        _finish(ax, spec, column)
    axes[-1].set_xlabel(_words(spec.setting or f"{spec.across}, mean over evaluations"))
    looks = [_look(index) for index in range(len(lines))]
    legend_below(figure, [_key(n, *look) for n, look in zip(lines, looks, strict=True)])
    caption = f"A point is the mean over {_TAKEN[spec.at]} of an arm, with its 95 % interval."
    return _drawing(study, spec, figure, pd.concat(parts, ignore_index=True), caption)


def _line(label: str) -> str:
    return label.rpartition(", ")[0] or label


def _point(label: str, arm: ArmRows, spec: FigureSpec, column: str) -> dict[str, object]:
    seeds = arm.rows.groupby("seed", sort=False)[column]
    means = (seeds.last() if spec.at == "end" else seeds.mean()).dropna()
    point = {"arm": label, "line": _line(label), "x": np.nan, "value": np.nan}
    if means.empty:
        return point
    estimate = seed_interval(means.to_numpy())
    if spec.setting:
        x = float(arm.settings[spec.setting])
    else:
        x = float(arm.rows[spec.across].mean()) if spec.across in arm.rows else np.nan
    ends = {"lower": estimate.lower, "upper": estimate.upper}
    return point | {"x": x, "value": estimate.mean} | ends


def _canvas(spec: FigureSpec) -> tuple[plt.Figure, np.ndarray]:
    height = _PANEL * len(spec.panels) + 1.2
    figure, axes = canvas(rows=len(spec.panels), height=height, sharex=True)
    return figure, axes[:, 0]


def _finish(ax: Axes, spec: FigureSpec, column: str) -> None:
    ax.set_ylabel(_words(column))
    if spec.log:
        log_axis(ax.yaxis)


def _look(index: int) -> tuple[str, str, str]:
    turn, place = divmod(index, len(_PALETTE))
    return _PALETTE[place], LINES[turn % len(LINES)], MARKERS[index % len(MARKERS)]


def _key(label: str, colour: str, line: str, marker: str = "") -> Line2D:
    return Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=5, label=label)


def _words(column: str) -> str:
    return column.replace("_", " ")


def _check(columns: Sequence[str], spec: FigureSpec, arms: Mapping[str, ArmRows]) -> None:
    known = {str(name) for arm in arms.values() for name in arm.rows}
    for column in columns:
        if column not in known:
            near = did_you_mean(column, known)
            raise UserError(f"figures: {spec.name}: no arm logs a column {column!r}{near}")


def _drawing(
    study: str, spec: FigureSpec, figure: plt.Figure, data: pd.DataFrame, caption: str
) -> Drawing:
    columns = ", ".join(dict.fromkeys(map(_words, spec.panels)))
    alt = f"{spec.title}: {columns} of {data['arm'].nunique()} arms."
    return Drawing(spec.name, study, spec.title, caption, alt, figure, data)


def write_figures(
    name: str,
    study: SandboxStudy,
    runs: Mapping[str, Path],
    settings: Mapping[str, Mapping[str, Any]],
    target: Path,
) -> None:
    """Write each figure of the study with a CSV file of its data, and write an index of figures.

    Args:
        settings: maps the label of each arm to its settings.
    """
    rows = read_rows(study, runs)
    declared = [label for label in rows if label != study.other]
    arms = {label: ArmRows(rows[label], settings.get(label, {})) for label in declared}
    with atomic_folder(target) as folder:
        save_all(drawings(name, study.figures, arms), folder)
