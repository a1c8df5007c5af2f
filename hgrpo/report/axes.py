"""The axes of a study, as its report reads them: which arms have which values of one key."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

# What of a batch the filter kept. In a batch that two arms both met, equal numbers mean that they
# kept the same groups.
KEPT = ["filter_kept_groups", "filter_kept_mass"]
_PLAYED = ["n_trajectories", "mean_reward", "std_reward", "success_rate"]


@dataclass(frozen=True)
class AxisArms:
    """An axis of which two arms or more were run.

    Attributes:
        key: of a method, with dots.
        arms: value, as text -> arm, in the axis's order.
    """

    name: str
    label: str
    key: str
    arms: Mapping[str, str]


def read_axes(config: Mapping) -> list[AxisArms]:
    """The axes in what `hgrpo.stages.comparison.comparison` returned; most studies have none."""
    return [
        AxisArms(axis["name"], axis["label"], axis["key"], dict(axis["arms"]))
        for axis in config.get("axes", [])
    ]


def kept_the_same(logs: pd.DataFrame, axis: AxisArms) -> list[tuple[str, str, int]]:
    """Pairs of values whose filters kept the same groups in all batches that both arms met.

    Arms start from one policy, and the same seed draws the same numbers, so their runs play the
    same first batches: those up to the first in which anything that was played differs.

    Returns:
        Both values, and the number of batches, over all seeds. Values without a filter are left
        out.
    """
    values, found = list(axis.arms), []
    for index, one in enumerate(values):
        for other in values[index + 1 :]:
            pair = [logs[logs["method"] == axis.arms[value]] for value in (one, other)]
            batches = _shared(*(run.set_index(["seed", "batch"]) for run in pair))
            if len(batches) and (batches["one"] == batches["other"]).all(axis=None):
                found.append((one, other, len(batches)))
    return found


def _shared(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """What two arms kept in the batches that both met, in columns `one` and `other`."""
    both = one.index.intersection(other.index).sort_values()
    one, other = one.loc[both], other.loc[both]
    alike = (one[_PLAYED] == other[_PLAYED]).all(axis=1)
    met = alike.groupby(level="seed").cummin()
    kept = pd.concat({"one": one[KEPT], "other": other[KEPT]}, axis=1)
    return kept[met].dropna()
