"""Cautions about a comparison of arms. They do not affect verdicts."""

from collections.abc import Mapping, Sequence

# An SFT policy gets a caution if its success and mean return are both below this fraction of the
# expert's. In the published studies, its success is 0.55 (WebShop) to 2.4 times the expert's.
FAR_BELOW = 1 / 3
# A run has collapsed if its success falls below this fraction of its best success so far.
COLLAPSED = 1 / 4
# A drop in success counts as a collapse only if its probability by chance is below this value.
CHANCE = 0.001
# Warn above this share of dead groups. In the published study `bakeoff`, flat GRPO still learns
# with half of its groups dead.
MOSTLY_DEAD = 2 / 3
# At this success rate, two thirds of groups of eight rollouts have no success. The experts of the
# published studies reach 0.08 or more.
POOR_EXPERT = 0.05
# Two arms count as one method if at most this fraction of advantages is unexplained (see `twins`).
SAME = 1e-6


def poor_expert(success: float) -> str:
    """Caution about an expert that solves few games within the turn cap; "" if it solves enough."""
    text = (
        f"The expert, which SFT imitates, solves {100 * success:.1f} % of its games within "
        "env.turn_cap turns. Before training, try a better expert, more turns, or easier games."
    )
    return text if success < POOR_EXPERT else ""


def far_from_expert(sft: tuple[float, float], expert: tuple[float, float]) -> str:
    """Caution about an SFT policy that is far below its expert; otherwise "".

    Args:
        sft, expert: pairs (success within the turn cap, mean return). There is a caution only if
            both values of the SFT policy are far below those of the expert.
    """
    if not all(mine < FAR_BELOW * theirs for mine, theirs in zip(sft, expert, strict=True)):
        return ""
    solved, imitated = (f"{100 * success:.1f} %" for success, _ in (sft, expert))
    return (
        f"The SFT policy is far below its expert: played greedily, it solves {solved} of its "
        f"tasks; the expert solves {imitated}. Before comparing arms, try more expert trajectories "
        "or sft.epochs, a larger model, or easier games."
    )


def first_collapse(success: Sequence[float], start: float, n_tasks: int) -> int | None:
    """Index of the first round in which a run's success collapsed; None if it never did.

    Collapsed success is below `COLLAPSED` times the best success so far. A policy with this best
    success also has a binomial probability below `CHANCE` of solving so few of `n_tasks` tasks.
    `success` contains one value per round, and `start` is the initial policy's success.
    """
    from scipy.stats import binom

    best = start
    for index, value in enumerate(success):
        if value < COLLAPSED * best and binom.cdf(round(value * n_tasks), n_tasks, best) < CHANCE:
            return index
        best = max(best, value)
    return None


def dead_caution(arm: str, number: int, rows: Sequence[Mapping]) -> str:
    """Caution about a round in which most groups were dead; otherwise "".

    `rows` is the round's log. After round 1, the result is also "" if most tasks are solved.
    """
    dead, groups = (sum(row[name] for row in rows) for name in ("dead_groups", "n_groups"))
    won = sum(row["success_rate"] * row["n_groups"] for row in rows)
    easy = won > groups / 2
    if not groups or dead < MOSTLY_DEAD * groups or (easy and number > 1):
        return ""
    heat = "higher" if easy else "lower"
    how = f"more training.rollouts_per_task, a {heat} training.temperature, " if won else ""
    how += "harder" if easy else "a better expert or SFT policy, or easier"
    refused = sum(row["inadmissible"] for row in rows) / sum(row["n_turns"] for row in rows)
    which = f" and {100 * refused:.0f} % of the actions refused" if refused > 0.5 else ""
    return (
        f"Most groups are dead: in round {number}, {100 * dead / groups:.0f} % of the groups of "
        f"{arm} had no gradient. {100 * won / groups:.0f} % of the games were won{which}. "
        f"Try {how} games."
    )


def one_method(row: Mapping) -> str:
    """Caution about two arms that are (nearly) the same method, given their row of `twins`."""
    nearly = row["unexplained"] > SAME
    rest = f", except for {100 * row['unexplained']:.1g} % of their squared norm" if nearly else ""
    return (
        f"{row['label_a']} and {row['label_b']} are {'nearly ' * nearly}one method under two names:"
        f" on the same rollouts, their advantages are equal up to scale{rest}."
    )
