"""Finds the arms whose credit has a known correlation with that of the assigner `oracle`.

The workflow reads this file while it plans, so it must not wait for pandas.
"""

from collections.abc import Mapping

from hgrpo.credit.section import CreditConfig
from hgrpo.evaluation.designs import trained


def doses(methods: Mapping[str, Mapping]) -> dict[str, float]:
    """Trained arm -> correlation of its credit with the oracle's, ascending.

    Empty if the arms have fewer than two different correlations. `methods` (arm -> its settings) is
    from `hgrpo.stages.comparison.comparison`.
    """
    found = {
        name: CreditConfig(**arm["credit"]).declared.correlation_with_oracle
        for name, arm in trained(methods).items()
    }
    known = {name: value for name, value in found.items() if value is not None}
    if len(set(known.values())) < 2:
        return {}
    return dict(sorted(known.items(), key=lambda item: item[1]))
