"""Warnings about a comparison of arms; no verdict uses them."""

from collections.abc import Mapping, Sequence

# In the published studies, SFT policies reach 0.55 (WebShop) to 2.4 times the expert's success.
FAR_BELOW = 1 / 3
# Fraction of the best success so far. Arms that learn lose less than this between two rounds.
COLLAPSED = 1 / 4
# On a small panel a few successes may be lost by chance. A collapse is less probable than this.
CHANCE = 0.001
# In the published study `bakeoff`, flat GRPO learns although half of its groups are dead.
MOSTLY_DEAD = 2 / 3
# At this rate, two thirds of all groups of eight contain no success. Published experts reach 0.08.
POOR_EXPERT = 0.05
# Largest unexplained share (`twins`) at which two names count as the same method.
SAME = 1e-6


def poor_expert(success: float) -> str:
    """Caution about an expert that solves few games within the turn cap; "" if it solves enough."""
    text = (
        f"The expert, which SFT imitates, solves {100 * success:.1f} % of its games within "
        "env.turn_cap turns. Before training, try a better expert, more turns, or easier games."
    )
    return text if success < POOR_EXPERT else ""


def far_from_expert(sft: tuple[float, float], expert: tuple[float, float]) -> str:
    """Caution about an SFT policy that is far below its expert; "" if it is not.

    Args:
        sft, expert: (success within the turn cap, mean return); both must be far below.
    """
    if not all(mine < FAR_BELOW * theirs for mine, theirs in zip(sft, expert, strict=True)):
        return ""
    solved, imitated = (f"{100 * success:.1f} %" for success, _ in (sft, expert))
    return (
        f"The SFT policy is far below its expert: played greedily, it solves {solved} of its "
        f"tasks, the expert {imitated}. Before comparing arms, try more expert trajectories or "
        "sft.epochs, a larger model, or easier games."
    )


def first_collapse(success: Sequence[float], start: float, n_tasks: int) -> int | None:
    """Index of the first round in which a run's success collapsed; None if it never did.

    A collapse is a fall below `COLLAPSED` times the best success so far that is unlikely by chance:
    at the best success rate, the binomial probability of so few successes in `n_tasks` tasks is
    below `CHANCE`. `success` is by round. `start` is the success of the initial policy.
    """
    from scipy.stats import binom

    best = start
    for index, value in enumerate(success):
        if value < COLLAPSED * best and binom.cdf(round(value * n_tasks), n_tasks, best) < CHANCE:
            return index
        best = max(best, value)
    return None


def dead_caution(arm: str, number: int, rows: Sequence[Mapping]) -> str:
    """Caution about a round in which most groups were dead, from its log rows; "" if not.

    After round 1 there is no caution if training has solved most tasks.
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
        f"Most groups are dead: in round {number}, {100 * dead / groups:.0f} % of those of {arm} "
        f"gave nothing to learn from; {100 * won / groups:.0f} % of the games played were won"
        f"{which}. Try {how} games."
    )


def one_method(row: Mapping) -> str:
    """Caution about two arms (a row of `twins`) that are, or nearly are, the same method."""
    nearly = row["unexplained"] > SAME
    how = f"all but {100 * row['unexplained']:.1g} % of the squares of" if nearly else ""
    return (
        f"{row['label_a']} and {row['label_b']} are {'nearly ' * nearly}one method under two names:"
        f" on the same rollouts, {how or 'all of'} their advantages are equal up to scale."
    )
