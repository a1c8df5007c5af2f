"""Configurable assigner that computes credit from the graph of states in a group's rollouts.

Rollouts of a task often reach the same state. The value of an action in a state is estimated from
the outcomes of the rollouts in which the policy took this action. docs/methods.md lists the methods
that can be configured, with their papers.

With `mixture: sum`, turn t of a rollout gets

    advantage_t = w_traj * A_traj + sum_j w_j * norm_j(credit_j(value_j(graph(key_j))))

The following are not supported:
- TIGPO's memory of earlier updates and its task scheduler (https://arxiv.org/abs/2609.03383)
- clusters that depend on the order of rollouts
- learned scores
- importance ratios of whole turns, which are part of the loss in GRAFT and GAGPO
"""

from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.state_graph.settings import Settings

if TYPE_CHECKING:
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context) -> "StateGraphCredit":
    """Create the assigner; imports scipy, which is not required to read a study."""
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

    return StateGraphCredit(settings, context)
