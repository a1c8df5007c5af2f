"""The comparison protocol: which episodes are compared, and what is said about them.

Primary endpoint: greedy success at the LAST round on the test panel, over seeds. Two questions,
each a family of paired comparisons (same seeds, same tasks) with Holm's correction inside it:

1. Does an arm differ from the reference arm (flatGRPO)?
2. Does an arm beat the supervised policy at its best sampling temperature? That temperature is
   the one with the highest VALIDATION success (ties: the lower one). A policy can gain success
   merely by sampling more sharply; only what exceeds this is learning.

Returns are compared likewise where an episode can pay a part: with intervals, without verdicts.
The best of all rounds is computed as well, because it is what other papers print, and is never
used for a verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hgrpo import streams
from hgrpo.errors import UserError
from hgrpo.evaluation import breakdowns, statistics
from hgrpo.evaluation.merge import check_episodes
from hgrpo.evaluation.outcomes import (
    GREEDY,
    TEST,
    VALIDATION,
    Outcomes,
    outcomes,
    select,
)

# Below any difference that means make.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Protocol:
    """What is compared with what.

    Attributes:
        reference: the arm every other one is compared with.
        untrained: the supervised policy's arm, evaluated at several temperatures; None without.
        methods: the arms in display order.
        level: of the intervals.
        replicates: of the plain two-level bootstrap.
    """

    reference: str = "flatGRPO"
    untrained: str | None = "SFTOnly"
    methods: Sequence[str] = ()
    level: float = statistics.LEVEL
    replicates: int = 10_000


@dataclass
class Comparison:
    """The tables of a study. Rates and differences are fractions.

    Attributes:
        methods: one row per arm (the untrained one also at its best temperature).
        seeds: test success of every run.
        against_reference, against_untrained: one row per paired comparison.
        mcnemar: one row per paired comparison and seed.
        temperatures: the untrained arm, one row per panel and temperature.
        rounds: greedy success per arm, round and panel; per seed in `rounds_by_seed`.
        best_rounds: the best round of each arm beside its last, for the record.
        task_types: greedy test success at the last round by task type.
        best_temperature: of the untrained arm, chosen on validation; None without one.
        last_round: per arm.
        n_test, n_validation: tasks on the panels.
    """

    protocol: Protocol
    methods: pd.DataFrame
    seeds: pd.DataFrame
    against_reference: pd.DataFrame
    against_untrained: pd.DataFrame
    mcnemar: pd.DataFrame
    temperatures: pd.DataFrame
    rounds: pd.DataFrame
    rounds_by_seed: pd.DataFrame
    best_rounds: pd.DataFrame
    task_types: pd.DataFrame
    best_temperature: float | None
    last_round: dict[str, int]
    n_test: int
    n_validation: int
    n_episodes: int

    @property
    def partial(self) -> bool:
        """Whether an episode can pay something without being a success."""
        return pays_in_part(self.methods)


def pays_in_part(methods: pd.DataFrame) -> bool:
    """Whether the arms of a table of methods earned more than their successes alone pay."""
    return bool((methods["mean_return"] - methods["success"] > _ROUNDING).any())


def compare(episodes: pd.DataFrame, protocol: Protocol) -> Comparison:
    """Carry out the protocol on merged episodes.

    Raises:
        UserError: panels differ or are incomplete, the reference arm is missing, an arm has no
            greedy test evaluation, runs of one arm end at different rounds, trained arms had
            different numbers of rounds, or two arms to be paired have different seeds.
    """
    check_episodes(episodes)
    found = list(dict.fromkeys(episodes["method"]))
    order = [name for name in protocol.methods if name in found]
    order += sorted(set(found) - set(order))
    untrained = protocol.untrained if protocol.untrained in found else None
    trained = [name for name in order if name != untrained]
    if trained and protocol.reference not in trained:
        raise UserError(
            f"the reference arm {protocol.reference!r} has no episodes, only {', '.join(found)}"
        )
    last = _last_rounds(episodes, trained)
    rows, seeds, paired = [], [], {}
    best_temperature, temperatures = None, pd.DataFrame()
    if untrained:
        last[untrained] = int(episodes.loc[episodes["method"] == untrained, "round"].max())
        temperatures = breakdowns.temperature_table(
            episodes, untrained, last[untrained], protocol.level
        )
        best_temperature = _best_temperature(temperatures)
    for method in order:
        used = [GREEDY]
        if method == untrained and best_temperature != GREEDY:
            used.append(best_temperature)
        for temperature in used:
            chosen = select(episodes, method, last[method], temperature)
            rows.append(_method_row(chosen, method, last[method], temperature, protocol.level))
            played = outcomes(chosen[chosen["panel"] == TEST], method, temperature)
            paired[method, temperature] = played
            test = chosen[chosen["panel"] == TEST]
            returns = test.groupby("seed")["env_return"].mean()
            seeds += [
                {
                    "method": method,
                    "temperature": temperature,
                    "seed": seed,
                    "success": rate,
                    "mean_return": returns[seed],
                }
                for seed, rate in zip(played.seeds, played.success.mean(axis=1), strict=True)
            ]
    against_reference, mcnemar_rows = pd.DataFrame(), []
    rivals = [name for name in trained if name != protocol.reference]
    if rivals:
        against_reference = _family(
            paired, rivals, (protocol.reference, GREEDY), protocol, mcnemar_rows
        )
    against_untrained = pd.DataFrame()
    if untrained and trained:
        against_untrained = _family(
            paired, trained, (untrained, best_temperature), protocol, mcnemar_rows
        )
    by_seed = breakdowns.rounds_by_seed(episodes)
    rounds = breakdowns.rounds(episodes, order, protocol.level)
    panels = episodes.groupby("panel")["task_id"].nunique()
    return Comparison(
        protocol=protocol,
        methods=pd.DataFrame(rows),
        seeds=pd.DataFrame(seeds),
        against_reference=against_reference,
        against_untrained=against_untrained,
        mcnemar=pd.DataFrame(mcnemar_rows),
        temperatures=temperatures,
        rounds=rounds,
        rounds_by_seed=by_seed,
        best_rounds=breakdowns.best_rounds(rounds, order, last),
        task_types=breakdowns.task_types(episodes, order, last, protocol.level),
        best_temperature=best_temperature,
        last_round=last,
        n_test=int(panels.get(TEST, 0)),
        n_validation=int(panels.get(VALIDATION, 0)),
        n_episodes=len(episodes),
    )


def methods_comparison(comparison: Comparison, episodes: pd.DataFrame) -> dict:
    """The manifest other H-GRPO plotting scripts read, from greedy test evaluations.

    Values are means over seeds; `best_*` is the round with the highest (return, success) pair.
    What H-GRPO calls success, a return above 0, is `pct_paid` here.
    """
    greedy = episodes[(episodes["panel"] == TEST) & (episodes["temperature"] == GREEDY)]
    manifest = {}
    for method in dict.fromkeys(comparison.methods["method"]):
        mine = greedy[greedy["method"] == method].groupby("round", sort=True)
        per_round = [
            {
                "round": int(number),
                "avg_R": float(group["env_return"].mean()),
                "pct_success": float(group["success"].mean()),
                "pct_paid": _paid(group),
                "n_ok": len(group),
            }
            for number, group in mine
        ]
        best = max(per_round, key=lambda row: (row["avg_R"], row["pct_success"]))
        manifest[method] = {
            "n_rounds": len(per_round),
            "best_eval_return": best["avg_R"],
            "last_eval_return": per_round[-1]["avg_R"],
            "mean_eval_return": float(np.mean([row["avg_R"] for row in per_round])),
            "best_pct_success": best["pct_success"],
            "last_pct_success": per_round[-1]["pct_success"],
            "mean_pct_success": float(np.mean([row["pct_success"] for row in per_round])),
            "total_eval_episodes": sum(row["n_ok"] for row in per_round),
            "_per_round_eval": per_round,
        }
        if method == comparison.protocol.untrained:
            manifest[method]["_notes"] = (
                "no reinforcement learning; greedy. At its best temperature on validation, "
                f"T={comparison.best_temperature:g}, see tables/methods.csv"
            )
    return manifest


def _last_rounds(episodes: pd.DataFrame, trained: Sequence[str]) -> dict[str, int]:
    """Last round of each trained arm; all of its runs, and all arms, must have the same one."""
    last: dict[str, int] = {}
    for method in trained:
        ends = episodes[episodes["method"] == method].groupby("seed")["round"].max()
        if ends.nunique() > 1:
            shown = ", ".join(f"seed {seed}: {end}" for seed, end in ends.items())
            raise UserError(f"{method}: runs end at different rounds ({shown})")
        last[method] = int(ends.iloc[0])
    if len(set(last.values())) > 1:
        shown = ", ".join(f"{name}: {end}" for name, end in last.items())
        raise UserError(f"arms had different budgets, their last rounds are {shown}")
    return last


def _method_row(
    chosen: pd.DataFrame,
    method: str,
    round_index: int,
    temperature: float,
    level: float,
) -> dict:
    test = chosen[chosen["panel"] == TEST]
    played = outcomes(test, method, temperature)
    rate = statistics.rate_interval(played.success, level)
    paid = statistics.mean_interval(played.returns, level)
    validation = chosen[chosen["panel"] == VALIDATION]["success"]
    turns = test["n_turns"].sum()
    return {
        "method": method,
        "temperature": temperature,
        "round": round_index,
        "n_seeds": rate.n_seeds,
        "n_tasks": rate.n_tasks,
        "success": rate.mean,
        "lower": rate.lower,
        "upper": rate.upper,
        "validation_success": validation.mean() if len(validation) else np.nan,
        "mean_return": paid.mean,
        "return_lower": paid.lower,
        "return_upper": paid.upper,
        "paid_share": _paid(test),
        "mean_progress": test["final_progress"].mean(),
        "mean_turns": test["n_turns"].mean(),
        "mean_action_tokens": test["n_action_tokens"].mean(),
        "inadmissible_share": test["n_inadmissible"].sum() / max(1, turns),
        "inadmissible": int(test["n_inadmissible"].sum()),
        "overlong": int(test["n_overlong"].sum()),
        "empty": int(test["n_empty"].sum()),
        "truncated_share": test["truncated"].mean(),
    }


def _paid(episodes: pd.DataFrame) -> float:
    """Share of episodes with a return above 0: what H-GRPO calls success."""
    return float((episodes["env_return"] > 0).mean())


def _family(
    paired: dict[tuple[str, float], Outcomes],
    methods: Sequence[str],
    baseline: tuple[str, float],
    protocol: Protocol,
    mcnemar_rows: list[dict],
) -> pd.DataFrame:
    """Paired comparisons of `methods`, greedy, with one baseline; appends to `mcnemar_rows`."""
    theirs, rows = paired[baseline], []
    for method in methods:
        mine = paired[method, GREEDY]
        _check_pairs(method, mine, baseline[0], theirs)
        estimate = statistics.difference_interval(mine.success, theirs.success, protocol.level)
        paid = statistics.mean_interval(mine.returns - theirs.returns, protocol.level)
        rng = streams.generator("bootstrap", method, *baseline)
        lower, upper = statistics.bootstrap_interval(
            mine.success - theirs.success, rng, protocol.replicates, protocol.level
        )
        rows.append(
            {
                "method": method,
                "baseline": baseline[0],
                "baseline_temperature": baseline[1],
                "n_seeds": estimate.n_seeds,
                "n_tasks": estimate.n_tasks,
                "success": mine.success.mean(),
                "baseline_success": theirs.success.mean(),
                "difference": estimate.mean,
                "lower": estimate.lower,
                "upper": estimate.upper,
                "standard_error": estimate.standard_error,
                "degrees_of_freedom": estimate.degrees_of_freedom,
                "bootstrap_lower": lower,
                "bootstrap_upper": upper,
                "p_value": estimate.p_value,
                "probability_of_improvement": statistics.probability_of_improvement(
                    mine.success, theirs.success
                ),
                "minimum_detectable_effect": statistics.minimum_detectable_effect(
                    estimate, len(methods), level=protocol.level
                ),
                "return_difference": paid.mean,
                "return_lower": paid.lower,
                "return_upper": paid.upper,
            }
        )
        for seed, ours, other in zip(mine.seeds, mine.success, theirs.success, strict=True):
            test = statistics.mcnemar(ours, other)
            mcnemar_rows.append(
                {
                    "method": method,
                    "baseline": baseline[0],
                    "baseline_temperature": baseline[1],
                    "seed": seed,
                    "only_method": test.only_method,
                    "only_baseline": test.only_baseline,
                    "p_value": test.p_value,
                }
            )
    table = pd.DataFrame(rows)
    table["p_holm"] = statistics.holm(table["p_value"].tolist())
    alpha = 1 - protocol.level
    table["verdict"] = [
        statistics.verdict(row.difference, row.p_holm, row.n_seeds, alpha)
        for row in table.itertuples()
    ]
    return table


def _check_pairs(method: str, mine: Outcomes, baseline: str, theirs: Outcomes) -> None:
    """Tasks agree already (`check_episodes`); seeds may not."""
    only_mine = sorted(set(mine.seeds) - set(theirs.seeds))
    only_theirs = sorted(set(theirs.seeds) - set(mine.seeds))
    if only_mine or only_theirs:
        missing = [f"{baseline} seed {seed}" for seed in only_mine]
        missing += [f"{method} seed {seed}" for seed in only_theirs]
        raise UserError(
            f"{method} against {baseline}: no test episodes of {', '.join(missing)} to pair with"
        )


def _best_temperature(temperatures: pd.DataFrame) -> float:
    """Highest validation success; the lower temperature of a tie."""
    validation = temperatures[temperatures["panel"] == VALIDATION]
    if validation.empty:
        raise UserError(
            "the untrained arm has no validation episodes, so its best temperature cannot be "
            "chosen without looking at the test panel"
        )
    ranked = validation.sort_values(["success", "temperature"], ascending=[False, True])
    return float(ranked["temperature"].iloc[0])
