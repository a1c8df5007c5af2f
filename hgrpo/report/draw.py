"""Draw the figures of a study and of its single runs."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pandas as pd

from hgrpo.report.figures import (
    alpha,
    axes,
    collapse,
    credit,
    dose_response,
    factorial,
    learning,
    outcome,
    thresholds,
    training,
    turnrd,
)
from hgrpo.report.inputs import Inputs
from hgrpo.report.style import Drawing, save_all


def drawings(
    inputs: Inputs,
    turns: Mapping[str, pd.DataFrame],
    last: Mapping[str, pd.DataFrame],
    fits: pd.DataFrame,
) -> Iterator[Drawing]:
    """Yield the figures of a study, then those of single runs; see `draw_all` for the arguments."""
    yield from study_drawings(inputs, turns, last, fits)
    for method in inputs.arms.trained:
        runs = inputs.logs[inputs.logs["method"] == method]
        for seed, run in runs.groupby("seed", sort=True):
            yield training.reward_curve(run, inputs.arms, method, int(seed))


def study_drawings(
    inputs: Inputs,
    turns: Mapping[str, pd.DataFrame],
    last: Mapping[str, pd.DataFrame],
    fits: pd.DataFrame,
) -> Iterator[Drawing]:
    """Yield figures one at a time, so that only one is in memory; skip figures without data."""
    comparison, logs, arms = inputs.comparison, inputs.logs, inputs.arms
    makers = [
        lambda: outcome.forest(comparison, arms),
        lambda: alpha.alpha(comparison, logs, arms, inputs.sweep),
        *(
            partial(axes.axis_figure, comparison, inputs.stops, inputs.collapse, arms, axis)
            for axis in inputs.axes
        ),
        lambda: (
            dose_response.dose_response(comparison, arms, inputs.doses)
            if arms.has_reference
            else None
        ),
        lambda: factorial.factorial(comparison, inputs.effects, inputs.design),
        lambda: outcome.sft_temperatures(comparison, arms),
        lambda: outcome.task_types(comparison, arms),
        lambda: learning.learning_curves(comparison, arms, inputs.stops) if arms.trained else None,
        lambda: learning.learning_by_play(comparison, inputs.play, arms),
        lambda: learning.equal_budget(comparison, inputs.play, arms),
        lambda: thresholds.thresholds(comparison, inputs.play, arms),
        lambda: credit.credit_strips(credit.credit_table(turns, arms), arms),
        lambda: credit.own_credit_strips(credit.own_credit_table(last), arms),
        lambda: training.protocol_comparison(comparison, logs, arms),
        lambda: alpha.alpha_diagnostics(logs, arms, inputs.sweep),
        lambda: collapse.collapse(inputs.collapse, arms),
        lambda: turnrd.turnrd(logs, fits, arms),
        lambda: training.health(logs, arms),
    ]
    for make in makers:
        if drawing := make():
            yield drawing


def draw_all(
    inputs: Inputs,
    turns: Mapping[str, pd.DataFrame],
    last: Mapping[str, pd.DataFrame],
    fits: pd.DataFrame,
    folder: Path,
) -> list[dict]:
    """Write every figure and the index into `folder`; return the index.

    `turns` and `last` are from `logs.read_first_turns` and `logs.read_last_turns`.
    """
    return save_all(drawings(inputs, turns, last, fits), folder)
