"""Which arms credit with a known correlation with the truth.

The assigner `oracle` credits with the truth, and its settings spoil it by a declared amount
(`hgrpo.credit.altered`). So the correlation follows from an arm's settings. Only this file knows
how; the workflow reads it while it plans, so it must not wait for pandas.
"""

from collections.abc import Mapping

from hgrpo.evaluation.designs import trained


def declared_correlation(credit: Mapping) -> float | None:
    """Correlation of an arm's credit with the truth; None if its settings do not say.

    Shuffled credit counts as 0, which is its expected correlation within a trajectory. Flipped
    credit has no place: nobody asks from which negative correlation on credit pays.
    """
    if credit["kind"] != "oracle" or credit.get("flipped", False):
        return None
    return 0.0 if credit.get("shuffled", False) else float(credit.get("correlation", 1.0))


def doses(methods: Mapping[str, Mapping]) -> dict[str, float]:
    """Trained arm -> correlation of its credit with the truth, ascending.

    Empty if the arms have fewer than two different correlations. `methods` (arm -> its settings) is
    from `hgrpo.stages.comparison.comparison`.
    """
    found = {name: declared_correlation(arm["credit"]) for name, arm in trained(methods).items()}
    known = {name: value for name, value in found.items() if value is not None}
    if len(set(known.values())) < 2:
        return {}
    return dict(sorted(known.items(), key=lambda item: item[1]))
