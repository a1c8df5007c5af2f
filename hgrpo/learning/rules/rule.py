"""The two kinds of update rule: one takes tokens one by one, the other a group as a whole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TokenRule:
    """A rule whose loss is a weighted sum of the tokens' terms.

    Both functions take the policy's log-probs, those at the start of the update, and advantages,
    float [N] each.

    Attributes:
        terms: returns the terms of the loss, [N].
        clipped: returns the share of tokens whose gradient a clip sets to 0, a scalar; None if the
            rule clips nothing.
    """

    terms: "Callable[[Tensor, Tensor, Tensor], Tensor]"
    clipped: "Callable[[Tensor, Tensor, Tensor], Tensor] | None" = None


@dataclass(frozen=True)
class GroupRule:
    """A rule whose loss is the mean over groups of a function of whole trajectories.

    Attributes:
        loss: takes the log-probs of a group's trajectories, those at the start of the update, and
            the trajectories' advantages, float [K] each; returns the group's loss, a scalar.
    """

    loss: "Callable[[Tensor, Tensor, Tensor], Tensor]"


UpdateRule = TokenRule | GroupRule
