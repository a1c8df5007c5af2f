"""The base class of credit assigners, their inputs, and checks of their output."""

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

# Warning shown if `is_order_dependent` is true for an assigner.
ORDER_DEPENDENT = (
    "the credit of a group changes if its trajectories are reordered or other groups are missing; "
    "compute each trajectory's credit from its own turns and statistics of its group, and draw "
    "random numbers from the group's stream"
)
# Relative tolerance for equal credit, because rounding of float32 sums depends on their order.
ROUNDING = 1e-4
# Largest valid absolute credit. Values over 1.8e19 would cause an integer overflow.
LARGEST = 1e9
# Fields that an assigner may set, so they are not compared. `turns` is compared separately.
_FILLED = {"turns", "goal_embedding", "embedding", "target", "credit", "advantage"}
# Type of a function that shows the progress of a fit. `fit` calls the function once, with the
# number of steps and the unit of a step, such as "epoch". The function returns another function,
# which `fit` calls after each step with a text to show.
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
    """Resources that an assigner may use; None if the run does not provide the resource.

    Attributes:
        environment: name of the environment's folder in hgrpo/games.
        policy: the policy that played the trajectories.
        conversation: converts texts to the policy's tokens.
        collector: plays new episodes, from the start or from any turn of an earlier episode.
        cache_dir: folder for files of the assigner, shared by all jobs of a study.
        fitted: folder of the model that was fitted after the previous round; None in round 1.
    """

    environment: str = ""
    policy: "Policy | None" = None
    conversation: "Conversation | None" = None
    collector: "Collector | None" = None
    cache_dir: Path | None = None
    fitted: Path | None = None


class CreditAssigner:
    """Base class of credit assigners. Their requirements are declared in `CreditSettings`.

    A subclass overrides `assign`, or `assign_many` if processing several groups at once is faster.
    """

    def __init_subclass__(cls) -> None:
        base = CreditAssigner
        if (cls.assign, cls.assign_many) == (base.assign, base.assign_many):
            raise TypeError(f"{cls.__name__} must override `assign` or `assign_many`")

    def __init__(self, settings: Any = None, context: Context = Context()):
        self.settings, self.context = settings, context

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return the credit of every turn: K float64 arrays [T_k]."""
        return self.assign_many([group])[0]

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Return the results of `assign` for several groups."""
        return [self.assign(group) for group in groups]

    def report(self) -> dict[str, float]:
        """Return log entries about the groups that were credited since the last report.

        An entry is ignored if its name is that of a standard log column.
        """
        return {}


def make_assigner(config: "CreditConfig", context: Context) -> CreditAssigner:
    """Create the configured assigner."""
    return kinds.load(config.kind).make(config.declared, context)


def assign_all(assigner: CreditAssigner, groups: Sequence[Group]) -> list[list[np.ndarray]]:
    """Compute the credit of several groups and check it.

    Returns:
        For each group, K finite float64 arrays [T_k].

    Raises:
        UserError: the credit has the wrong length or shape or is not finite, or the assigner
            modified the trajectories.
    """
    before = [_played(group) for group in groups]
    credits = assigner.assign_many(groups)
    name = f"{type(assigner).__module__}.{type(assigner).__qualname__}"
    for group, played in zip(groups, before, strict=True):
        if _played(group) != played:
            raise UserError(
                f"{name}: task {group.trajectories[0].task.task_id}: the assigner modified its "
                "input (e.g. turns, rewards, tokens or log-probs); modify copies instead"
            )
    _check_length(credits, len(groups), f"{name}.assign_many", "groups")
    return [_checked(credit, group, name) for credit, group in zip(credits, groups, strict=True)]


def other_orders(length: int) -> list[np.ndarray]:
    """Return two permutations [length]: the first item moved to the end, and the first two swapped.

    All permutations are products of these two. Credit that depends on the order therefore changes
    under at least one of the two.
    """
    swapped = np.arange(length)
    swapped[:2] = swapped[:2][::-1]
    return [np.roll(np.arange(length), -1), swapped]


def is_order_dependent(
    make: Callable[[], CreditAssigner], group: Group, credit: Sequence[np.ndarray]
) -> bool:
    """Whether credit changes if the group is reordered and processed without other groups.

    Args:
        make: creates a new assigner, because the assigner that returned `credit` may have state.
        group: the group to which `credit` was assigned.
        credit: K arrays [T_k]. Differences up to `ROUNDING` times the largest value are ignored.
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
    # Require a list: in an array [K, K], the axis of the trajectories would be ambiguous.
    if not isinstance(rows, Sequence):
        raise UserError(f"{where}: expected a list, not {type(rows).__name__}")
    if len(rows) != length:
        raise UserError(f"{where}: expected credit for {length} {items}, got {len(rows)}")


def _checked_row(row: object, turns: int, where: str) -> np.ndarray:
    values = np.asarray(row)
    if values.dtype.kind not in "fiu":
        raise UserError(f"{where}: expected an array of numbers as credit")
    values = values.astype(np.float64)
    if values.shape != (turns,):
        raise UserError(f"{where}: expected credit for {turns} turns, got shape {values.shape}")
    fits = np.abs(values) <= LARGEST
    if not fits.all():
        turn = int(np.argmin(fits))
        raise UserError(
            f"{where}: the credit of turn {turn} is {values[turn]}; its absolute value must be at "
            f"most {LARGEST:g}"
        )
    return values
