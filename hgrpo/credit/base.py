"""The base class of credit assigners, their input, and the check of their output."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgrpo.credit import kinds
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory, Turn

if TYPE_CHECKING:
    from hgrpo.agent.conversation import Conversation
    from hgrpo.credit.kinds import CreditConfig
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.collector import Collector

# The caution for an assigner that `is_order_dependent`.
ORDER_DEPENDENT = (
    "its credit is another if a group is credited again, alone and in another order; credit each "
    "trajectory from its turns and the group's statistics, and draw from the group's stream"
)
# Of the largest credit: differences between sums in another order, of float32 numbers too.
ROUNDING = 1e-4
# Overflows of integers (1.8e19) are above it.
LARGEST = 1e9
# Fields of trajectories and turns that an assigner may fill in; the turns are compared one by one.
_FILLED = {"turns", "goal_embedding", "embedding", "target", "credit", "advantage"}
# A function that shows the progress of a fit. A fit calls it once, with the number of steps and
# their unit, such as "epoch". The function returns another function, to be called after each step
# with a short text about the step.
Progress = Callable[[int, str], Callable[[str], object]]


@dataclass(frozen=True)
class Group:
    """K trajectories of one task.

    Attributes:
        trajectories: all K trajectories, in the order of their rollouts.
        stream: name of the group's random stream.
    """

    trajectories: Sequence[Trajectory]
    stream: tuple[object, ...]


@dataclass(frozen=True)
class Context:
    """What an assigner may use beside the trajectories; a field is None if the run lacks it.

    Attributes:
        environment: name of the environment's folder in hgrpo/games.
        policy: the policy that played, for its hidden states.
        conversation: converts texts to the policy's tokens.
        collector: plays episodes, from the start or from any turn of an earlier episode.
        cache_dir: folder that all jobs of a study share; an assigner may keep files there.
        fitted: folder that the fit after the previous round wrote; None in the first round.
    """

    environment: str = ""
    policy: "Policy | None" = None
    conversation: "Conversation | None" = None
    collector: "Collector | None" = None
    cache_dir: Path | None = None
    fitted: Path | None = None


class CreditAssigner:
    """Credits the turns of groups. Its `CreditSettings` declare what it needs.

    A subclass overrides `assign`, or `assign_many` if it gains from several groups at once.
    """

    def __init__(self, settings: Any = None, context: Context = Context()):
        self.settings, self.context = settings, context

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K float64 arrays [T_k], one number for each turn."""
        return self.assign_many([group])[0]

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """`assign` for several groups."""
        return [self.assign(group) for group in groups]

    def report(self) -> dict[str, float]:
        """Numbers for the log about the groups credited since the last report.

        The log's own columns replace numbers of the same names.
        """
        return {}


def make_assigner(config: "CreditConfig", context: Context) -> CreditAssigner:
    """Make the assigner that a method names."""
    return kinds.load(config.kind).make(config.declared, context)


def assign_all(assigner: CreditAssigner, groups: Sequence[Group]) -> list[list[np.ndarray]]:
    """Compute the credit of several groups and check it.

    Returns:
        For each group, K finite float64 arrays [T_k].

    Raises:
        UserError: the credit has another length or shape or is not finite, or the assigner changed
            the trajectories.
    """
    before = [_played(group) for group in groups]
    credits = assigner.assign_many(groups)
    name = f"{type(assigner).__module__}.{type(assigner).__qualname__}"
    for group, played in zip(groups, before, strict=True):
        if _played(group) != played:
            raise UserError(
                f"{name}: task {group.trajectories[0].task.task_id}: the assigner changed its "
                "group, such as turns, rewards, tokens or log-probs; work on copies"
            )
    _check_length(credits, len(groups), f"{name}.assign_many", "groups")
    return [_checked(credit, group, name) for credit, group in zip(credits, groups, strict=True)]


def other_orders(length: int) -> list[np.ndarray]:
    """Two orders of a group, as indices [length] each: first one last, and first two swapped.

    Together they generate every order, so no mapping of trajectories to their neighbours passes
    both. In a group of two, the other trajectory is the next one.
    """
    swapped = np.arange(length)
    swapped[:2] = swapped[:2][::-1]
    return [np.roll(np.arange(length), -1), swapped]


def is_order_dependent(
    make: Callable[[], CreditAssigner], group: Group, credit: Sequence[np.ndarray]
) -> bool:
    """Whether copies of a group, alone and in `other_orders`, get other credit.

    Args:
        make: makes a fresh assigner; the one that gave `credit` may hold state.
        group: a group that has been credited.
        credit: K arrays [T_k]. Differences up to `ROUNDING` of the largest value do not count.
    """
    largest = max((np.abs(row).max(initial=0.0) for row in credit), default=0.0)
    for order in other_orders(len(credit)):
        reordered = replace(group, trajectories=[group.trajectories[k] for k in order])
        try:
            (again,) = assign_all(make(), [copy.deepcopy(reordered)])
        except UserError:
            return True
        for k, row in zip(order, again, strict=True):
            if not np.allclose(row, credit[k], rtol=0, atol=ROUNDING * largest):
                return True
    return False


def _played(group: Group) -> list:
    """Copy of the played trajectories, without the fields that assigners may fill in."""
    return [[_fields(t), *map(_fields, t.turns)] for t in group.trajectories]


def _fields(record: Trajectory | Turn) -> list:
    names = [each.name for each in fields(record) if each.name not in _FILLED]
    values = [getattr(record, name) for name in names]
    return [[*value] if isinstance(value, list) else value for value in values]


def _checked(credit: object, group: Group, name: str) -> list[np.ndarray]:
    trajectories = group.trajectories
    task = f"{name}: task {trajectories[0].task.task_id}" if trajectories else name
    _check_length(credit, len(trajectories), task, "trajectories")
    return [
        _checked_row(row, len(trajectory.turns), f"{task} rollout {trajectory.rollout}")
        for row, trajectory in zip(credit, trajectories, strict=True)
    ]


def _check_length(rows: object, length: int, where: str, items: str) -> None:
    # In an array [K, K], the axis of the trajectories would be ambiguous.
    if not isinstance(rows, Sequence):
        raise UserError(f"{where}: a list was expected, not {type(rows).__name__}")
    if len(rows) != length:
        raise UserError(f"{where}: credit for {len(rows)} {items} instead of {length}")


def _checked_row(row: object, turns: int, where: str) -> np.ndarray:
    values = np.asarray(row)
    if values.dtype.kind not in "fiu":
        raise UserError(f"{where}: the credit is not an array of numbers")
    values = values.astype(np.float64)
    if values.shape != (turns,):
        raise UserError(f"{where}: credit of shape {values.shape} for {turns} turns")
    fits = np.abs(values) <= LARGEST
    if not fits.all():
        turn = int(np.argmin(fits))
        raise UserError(f"{where}: the credit of turn {turn} is {values[turn]}; over {LARGEST:g}")
    return values
