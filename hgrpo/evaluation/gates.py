"""Checks a study's gates, i.e. its conditions on control arms.

A gate is a claim about a control arm's difference from the reference at the declared endpoint. If a
gate fails, the study's other comparisons prove little. Gates use intervals without Holm's
correction, because each gate is a separate claim and all gates are reported. For `not_above` and
`no_difference`, the power of a gate is the probability that the gate fails at a given true
difference. Otherwise, the power is the probability that the gate passes if the control works.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread

if TYPE_CHECKING:
    import pandas as pd

Expected = Literal["above", "below", "not_above", "no_difference", "equivalent"]
PASSED, FAILED, OPEN = "passed", "failed", "open"


class Gate(Strict):
    """A claim about an arm's difference from the reference at the endpoint."""

    arm: str = Field(description="name of the arm to compare with the reference")
    expect: Expected = Field(
        description="expected interval of the difference. above, below: it lies above or below 0; "
        "not_above: it does not lie above 0; no_difference: it contains 0; equivalent: it lies "
        "between -`points` and `points`"
    )
    points: float | None = Field(
        None,
        gt=0,
        description="the minimum difference with `above`, or the margin with `equivalent`, in "
        "percentage points",
    )

    notice: float = Field(
        10,
        gt=0,
        description="assumed true difference, in percentage points, for the gate's power in the "
        "report. Power is the probability that the gate passes (above, below) or fails "
        "(not_above, no_difference). For `equivalent`, it is the probability of passing at a true "
        "difference of 0",
    )

    @model_validator(mode="after")
    def _points_are_read(self) -> Self:
        readers = ("above", "equivalent")
        refuse_unread(self, ("points", self.expect in readers, "expect: above or equivalent"))
        others = "an `expect` other than equivalent"
        refuse_unread(self, ("notice", self.expect != "equivalent", others))
        if self.expect == "equivalent" and self.points is None:
            raise ValueError("`expect: equivalent` requires an equivalence margin; set `points`")
        return self

    def holds(self, difference: float, lower: float, upper: float) -> bool:
        """Whether a difference and its interval, given as fractions, satisfy the claim.

        `equivalent` uses two one-sided tests (TOST), each at level (1 - confidence) / 2. Source:
        Schuirmann 1987, "A comparison of the two one-sided tests procedure and the power approach"
        (https://doi.org/10.1007/BF01068419).
        """
        margin = (self.points or 0.0) / 100
        match self.expect:
            case "above":
                return lower > 0 and difference >= margin
            case "below":
                return upper < 0
            case "not_above":
                return lower <= 0
            case "no_difference":
                return lower <= 0 <= upper
            case "equivalent":
                return -margin <= lower and upper <= margin

    def power(self, error: float, freedom: float, level: float) -> float:
        """Power of the gate in a repeat of the study; NaN if `error` or `freedom` is unknown.

        The difference in the repeat is normal with standard deviation `error`. The estimate of
        `error`^2 in the repeat is an independent scaled chi-squared variable with `freedom` degrees
        of freedom.
        """
        import numpy as np
        from scipy import stats

        if not error > 0:
            return np.nan
        middles = (np.arange(_POINTS) + 0.5) / _POINTS
        errors = error * np.sqrt(stats.chi2.ppf(middles, freedom) / freedom)
        half = stats.t.ppf((1 + level) / 2, freedom) * errors
        margin, infinite = (self.points or 0.0) / 100, np.full(_POINTS, np.inf)
        low, high, truth = {
            "above": (np.maximum(half, margin), infinite, self.notice),
            "below": (-infinite, -half, -self.notice),
            "not_above": (-infinite, half, self.notice),
            "no_difference": (-half, half, self.notice),
            "equivalent": (half - margin, margin - half, 0.0),
        }[self.expect]
        ends = (stats.norm.cdf((end - truth / 100) / error) for end in (high, low))
        passes = float(np.maximum(np.subtract(*ends), 0).mean())
        return 1 - passes if self.expect in ("not_above", "no_difference") else passes


def judge(gates: Sequence[Gate], against_reference: "pd.DataFrame", level: float) -> "pd.DataFrame":
    """Return the result of each gate, one row per gate.

    Args:
        against_reference: the table of `Comparison`.
        level: confidence level of the intervals in this table.

    Returns:
        Columns method, expect, points, difference (from the reference), lower, upper, n_seeds,
        result, notice and power (`Gate.power`). `result` is `passed`, `failed`, or `open` if the
        arm was not run or has fewer than `FEWEST_SEEDS` seeds.
    """
    # Imported here so that parsing the workflow, which uses the settings above, stays fast.
    import pandas as pd

    from hgrpo.evaluation.statistics import FEWEST_SEEDS

    by_arm = {row["method"]: row for row in against_reference.to_dict("records")}
    rows = []
    for gate in gates:
        row = by_arm.get(gate.arm)
        interval = {name: row[name] if row else float("nan") for name in _INTERVAL}
        seeds, result = (row["n_seeds"] if row else 0), OPEN
        if seeds >= FEWEST_SEEDS:
            result = PASSED if gate.holds(**interval) else FAILED
        head = {"method": gate.arm, "expect": gate.expect, "points": gate.points}
        power = float("nan")
        if seeds > 1:
            power = gate.power(row["standard_error"], row["degrees_of_freedom"], level)
        tail = {"n_seeds": seeds, "result": result, "notice": gate.notice, "power": power}
        rows.append(head | interval | tail)
    return pd.DataFrame(rows)


_POINTS = 1000  # quantiles of a standard error's distribution
_INTERVAL = ("difference", "lower", "upper")
