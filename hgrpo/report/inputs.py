"""Inputs of figures and page: arms, episodes, logs and the comparison of the arms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hgrpo.config.read import validate
from hgrpo.evaluation.comparison import Comparison, compare
from hgrpo.evaluation.designs import Factorial, alpha_sweep, doses, factorial
from hgrpo.evaluation.differences import effects
from hgrpo.evaluation.merge import merge_episodes
from hgrpo.evaluation.played_endpoints import Protocol
from hgrpo.evaluation.settings import STATISTICS, StatisticsConfig
from hgrpo.report.arms import Arms, read_arms
from hgrpo.report.logs import play_by_round, read_collapse, read_logs, read_stops


@dataclass(frozen=True)
class Inputs:
    """Data of figures and page.

    Attributes:
        play: cumulative `logs.SUMS` of each run at the end of each round (`play_by_round`).
        stops: runs ended by a stopping rule (`read_stops`).
        collapse: dependence of replies on their prompts (`read_collapse`); None if not measured.
        sweep: alpha of each arm of an alpha sweep (`designs.alpha_sweep`); empty if there is none.
        doses: correlation of each arm's credit with the oracle's credit (`designs.doses`).
        axes: name, label, key and arms (value, arm) of each setting that differs between arms.
        design: factorial design of the arms, or None.
        effects: main effects and interactions (`differences.effects`); empty if there is no design.
    """

    arms: Arms
    episodes: pd.DataFrame
    logs: pd.DataFrame
    play: pd.DataFrame
    stops: pd.DataFrame
    collapse: pd.DataFrame | None
    comparison: Comparison
    sweep: Mapping[str, float]
    doses: Mapping[str, float]
    axes: Sequence[Mapping]
    design: Factorial | None
    effects: pd.DataFrame


def read_inputs(
    config: Mapping, episodes: Path, train_logs: Sequence[Path], fits: Sequence[Path] = ()
) -> Inputs:
    """Read a study's results and compare its arms.

    Args:
        config: from `hgrpo.stages.comparison.comparison`.
        train_logs, fits: paths of train_log.json of every round, and of every fit.

    Raises:
        UserError: a setting of the statistics is invalid. Also see `read_arms`, `merge_episodes`,
            `read_logs` and `compare`.
    """
    collapse = read_collapse(train_logs) if config.get("collapse") else None
    logged = read_logs(train_logs, fits), read_stops(train_logs), collapse
    return make_inputs(config, episodes, *logged)


def make_inputs(
    config: Mapping,
    episodes: Path,
    logs: pd.DataFrame,
    stops: pd.DataFrame,
    collapse: pd.DataFrame | None,
) -> Inputs:
    """As `read_inputs`, from parsed logs."""
    arms = read_arms(config)
    merged = merge_episodes([episodes], arms.names)
    protocol = Protocol(
        reference=arms.reference,
        untrained=arms.untrained,
        methods=arms.names,
        step_trajectories=config.get("step_trajectories", {}),
        twin=min(arms.twins, default=None),
        settings=validate(
            StatisticsConfig, {key: config[key] for key in STATISTICS & set(config)}, "--config"
        ),
    )
    merged = merged[merged["method"].isin(arms.names)]
    play = play_by_round(logs, stops)
    comparison = compare(merged, protocol, play)
    sweep, design = alpha_sweep(config["methods"]), factorial(config["methods"], arms.reference)
    of_design = pd.DataFrame()
    if design:
        of_design = effects(comparison.scores, design, protocol.settings.score, protocol.level)
    known, axes = doses(config["methods"]), config.get("axes", [])
    results = arms, merged, logs, play, stops, collapse, comparison
    return Inputs(*results, sweep, known, axes, design, of_design)
