"""Compares the arms of a study: computes paired differences and verdicts from episodes.

A study declares its endpoint and its score before it runs. The endpoint defines a set of rounds
(`endpoint.rounds_read`), and the score of an episode is its success or its return. For each seed,
a task's score is the mean over the greedy test evaluations after these rounds. Each of two
questions is answered by a family of comparisons, which are paired by seed and task. Holm's
correction is applied within each family:

1. Does a trained arm differ from the reference arm (flatGRPO)?
2. Does a trained arm beat the supervised policy at the supervised policy's best temperature? This
   is the temperature with the highest validation score (the lowest, if there is a tie). A lower
   temperature alone can raise success, so only a larger gain is evidence of learning. The
   supervised policy is evaluated once, and this evaluation is paired with every seed and endpoint.

A study may declare further pairs of trained arms, which form a third family. Other endpoints are
also compared, with intervals but without verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation import breakdowns, families, gates, power, thresholds
from hgrpo.evaluation.differences import Runs
from hgrpo.evaluation.endpoint import LAST_ROUND, endpoint_name
from hgrpo.evaluation.merge import check_episodes
from hgrpo.evaluation.outcomes import GREEDY, SCORE_COLUMNS, TEST, VALIDATION, score_table
from hgrpo.evaluation.played_endpoints import Protocol, others_than_declared, played_endpoints
from hgrpo.evaluation.settings import Score

# Differences between means below this value are treated as floating-point errors.
_ROUNDING = 1e-9


@dataclass
class Comparison:
    """The tables of a study. Rates and differences are fractions.

    Attributes:
        methods: greedy results, one row per arm. `endpoint` is the score at the declared endpoint,
            with its interval; the other columns describe the last round. If the untrained arm's
            best temperature is not 0, a second row has its results at this temperature.
        seeds: endpoint score, last-round success and last-round return, one row per run.
        against_reference, against_untrained: one row per paired comparison at the endpoint.
        pairs: the same columns for each further pair in which both arms have episodes.
        endpoints: every arm's score at every endpoint; `declared` marks the declared endpoint.
        other_endpoints: paired differences at the undeclared endpoints.
        temperatures: results of the untrained arm, one row per panel and temperature.
        rounds: greedy success per arm, round and panel; `rounds_by_seed` has one row per seed.
        best_rounds: each arm's best and last round on the test panel, one row per arm.
        first_rounds: time of each run to each score threshold; `thresholds` is the same by arm.
        seeds_needed: number of seeds required to detect given differences; see `power`.
        gates: results of the declared gates on controls; see `gates.judge`.
        best_temperature: best temperature of the untrained arm on validation; None if there is no
            untrained arm.
        scores: maps arms to scores [seeds, tasks] of greedy play at the endpoint.
        n_test: number of tasks on the test panel.
    """

    protocol: Protocol
    methods: pd.DataFrame
    seeds: pd.DataFrame
    against_reference: pd.DataFrame
    against_untrained: pd.DataFrame
    pairs: pd.DataFrame
    endpoints: pd.DataFrame
    other_endpoints: pd.DataFrame
    temperatures: pd.DataFrame
    rounds: pd.DataFrame
    rounds_by_seed: pd.DataFrame
    best_rounds: pd.DataFrame
    task_types: pd.DataFrame
    first_rounds: pd.DataFrame
    thresholds: pd.DataFrame
    seeds_needed: pd.DataFrame
    gates: pd.DataFrame
    best_temperature: float | None
    last_round: dict[str, int]
    scores: dict[str, np.ndarray]
    n_test: int
    n_episodes: int

    @property
    def partial(self) -> bool:
        """Whether any arm's mean return exceeds its success rate; see `pays_in_part`."""
        return pays_in_part(self.methods)


def pays_in_part(methods: pd.DataFrame) -> bool:
    """Whether any arm's mean return exceeds its success rate, e.g. through partial rewards.

    `methods` is `Comparison.methods`.
    """
    return bool((methods["mean_return"] - methods["success"] > _ROUNDING).any())


def compare(
    episodes: pd.DataFrame, protocol: Protocol, play: pd.DataFrame | None = None
) -> Comparison:
    """Compare all arms, given their merged episodes.

    Args:
        play: columns method, seed, round, trajectories and replies. The last two are cumulative
            counts at the end of the round, including continuations (`hgrpo.trajectories.log_row`).
            Without this table, no thresholds are computed and the endpoint cannot be a budget.

    Raises:
        UserError: episodes are missing or duplicated, panels differ, runs have different numbers of
            rounds, the endpoint's budget is too small or too large for a run, or the two arms of a
            pair have different seeds.
    """
    check_episodes(episodes)
    play = pd.DataFrame(columns=thresholds.PLAY) if play is None else play
    settings, level = protocol.settings, protocol.level
    order, untrained = _arms(episodes, protocol)
    evaluated, episodes = episodes, _for_every_seed(episodes, untrained)
    trained = [name for name in order if name != untrained]
    last = _last_rounds(episodes, trained)
    best_temperature, temperatures = None, pd.DataFrame()
    if untrained:
        last[untrained] = int(episodes.loc[episodes["method"] == untrained, "round"].max())
        temperatures = breakdowns.temperature_table(episodes, untrained, last[untrained], level)
        of_one = evaluated["method"] == untrained
        temperatures["n_seeds"] = evaluated.loc[of_one, "seed"].nunique()
        best_temperature = _best_temperature(temperatures, settings.score)
    arms = [(method, GREEDY) for method in order]
    if untrained and best_temperature != GREEDY:
        arms.insert(order.index(untrained) + 1, (untrained, best_temperature))
    played = played_endpoints(episodes, arms, protocol, last, play)
    declared = played[endpoint_name(settings.endpoint)]
    methods = breakdowns.methods(evaluated, arms, declared, played[LAST_ROUND], protocol, last)

    # The families of comparisons.
    rivals = [name for name in trained if name != protocol.reference]
    reference = (protocol.reference, GREEDY)
    compares = protocol.reference in trained
    compared_with = [(rivals, reference)] if rivals and compares else []
    compared_with += [(trained, (untrained, best_temperature))] if untrained and trained else []
    twin = protocol.twin if settings.pool_twin else None
    pooled = (trained, protocol.reference, twin)
    runs = Runs(declared, *pooled, settings.score, level)
    compared = {
        baseline: families.with_verdicts(runs, [(name, baseline) for name in names], settings)
        for names, baseline in compared_with
    }
    against_reference, spreads = compared.get(reference, (pd.DataFrame(), []))
    pairs = [
        (pair.arm, (pair.against, GREEDY))
        for pair in settings.pairs
        if {pair.arm, pair.against} <= {*trained}
    ]
    rounds = breakdowns.rounds(episodes, order, level)
    by_seed = breakdowns.rounds_by_seed(episodes)
    first = _first_rounds(by_seed, play, methods, trained, best_temperature, protocol)
    others = list(others_than_declared(played, settings, pays_in_part(methods)))
    return Comparison(
        protocol=protocol,
        methods=methods,
        seeds=breakdowns.seeds(arms, declared, played[LAST_ROUND], settings.score),
        against_reference=against_reference,
        against_untrained=compared.get((untrained, best_temperature), (pd.DataFrame(),))[0],
        pairs=families.with_verdicts(runs, pairs, settings)[0] if pairs else pd.DataFrame(),
        endpoints=breakdowns.endpoints(played, arms, others, settings),
        other_endpoints=pd.DataFrame(
            {"endpoint": name, "score": score} | row
            for name, score in others
            for names, baseline in compared_with
            for row in families.for_the_record(
                Runs(played[name], *pooled, score, level), names, baseline
            )
        ),
        temperatures=temperatures,
        rounds=rounds,
        rounds_by_seed=by_seed,
        best_rounds=breakdowns.best_rounds(rounds, order, last),
        task_types=breakdowns.task_types(episodes, order, last, level),
        first_rounds=first,
        thresholds=thresholds.summary(first, protocol.reference, level),
        seeds_needed=power.seeds_table(spreads, len(declared[arms[0]].seeds), level),
        gates=gates.judge(settings.gates, against_reference, level),
        best_temperature=best_temperature,
        last_round=last,
        scores={name: score_table(declared[name, GREEDY], settings.score) for name in order},
        n_test=episodes.loc[episodes["panel"] == TEST, "task_id"].nunique(),
        n_episodes=len(evaluated),
    )


def _for_every_seed(episodes: pd.DataFrame, untrained: str | None) -> pd.DataFrame:
    """Repeat the single evaluation of the untrained arm for each seed of the trained arms.

    The copies add no variance between seeds, so intervals treat the arm as one policy. Counts of
    episodes, turns and seeds do not include the copies.
    """
    mine = episodes["method"] == untrained
    seeds = episodes.loc[~mine, "seed"].unique()
    if episodes.loc[mine, "seed"].nunique() != 1 or not len(seeds):
        return episodes
    copies = (episodes[mine].assign(seed=seed) for seed in seeds)
    return pd.concat([episodes[~mine], *copies], ignore_index=True)


def _first_rounds(
    by_seed: pd.DataFrame,
    play: pd.DataFrame,
    methods: pd.DataFrame,
    trained: Sequence[str],
    best_temperature: float | None,
    protocol: Protocol,
) -> pd.DataFrame:
    """Round in which each run first reached each threshold.

    If the study declares no thresholds, they are derived from its scores. The table is empty if
    `play` is empty or all derived thresholds are 0.
    """
    if play.empty:
        return pd.DataFrame()
    column, levels = SCORE_COLUMNS[protocol.settings.score], protocol.settings.thresholds
    test = by_seed[by_seed["panel"] == TEST].set_index("method")
    runs = pd.concat(test.loc[[name]] for name in trained).reset_index() if trained else test
    if not levels and trained:
        ends = methods.set_index(["method", "temperature"])[column]
        start = 0.0 if best_temperature is None else ends[protocol.untrained, best_temperature]
        levels = thresholds.derived(start, ends.get((protocol.reference, GREEDY), start))
        levels = thresholds.without_zero(levels, runs[column])
    return thresholds.first_rounds(runs, levels, column, play)


def _arms(episodes: pd.DataFrame, protocol: Protocol) -> tuple[list[str], str | None]:
    """The arms that have episodes, in display order, and the name of the untrained arm."""
    played = list(dict.fromkeys(episodes["method"]))
    order = [name for name in protocol.methods if name in played]
    order += sorted(set(played) - set(order))
    untrained = protocol.untrained if protocol.untrained in played else None
    trained = set(played) - {untrained}
    if trained and protocol.reference not in trained and protocol.expects_reference:
        raise UserError(
            f"the reference arm {protocol.reference!r} has no episodes; arms with episodes: "
            f"{', '.join(played)}"
        )
    return order, untrained


def _last_rounds(episodes: pd.DataFrame, trained: Sequence[str]) -> dict[str, int]:
    last: dict[str, int] = {}
    for method in trained:
        ends = episodes[episodes["method"] == method].groupby("seed")["round"].max()
        if ends.nunique() > 1:
            rounds = ", ".join(f"seed {seed}: {end}" for seed, end in ends.items())
            raise UserError(f"{method}: runs end at different rounds ({rounds})")
        last[method] = int(ends.iloc[0])
    if len(set(last.values())) > 1:
        rounds = ", ".join(f"{name}: {end}" for name, end in last.items())
        raise UserError(f"arms end at different rounds ({rounds}); train all to the same round")
    return last


def _best_temperature(temperatures: pd.DataFrame, score: Score) -> float:
    """The temperature with the highest validation score; ties go to the lowest temperature."""
    validation = temperatures[temperatures["panel"] == VALIDATION]
    if validation.empty:
        raise UserError(
            "the untrained arm has no validation episodes, which are required to choose its best "
            "temperature without using the test panel"
        )
    ranked = validation.sort_values([SCORE_COLUMNS[score], "temperature"], ascending=[False, True])
    return float(ranked["temperature"].iloc[0])
