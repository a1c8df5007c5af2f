"""Credit from the graph of states that a group's rollouts share, by one configurable assigner.

Rollouts of a task often reach the same state. An action's value there is estimated from the ends of
the rollouts that took it. docs/methods.md lists the methods that the settings express, from GiGPO
to GraphHCA, with their papers.

With `mixture: sum`, turn t of a rollout gets

    advantage_t = w_traj * A_traj + sum_j w_j * norm_j(credit_j(value_j(graph(key_j))))

The settings cannot express:
- TIGPO's memory of earlier updates and its task scheduler (https://arxiv.org/abs/2609.03383)
- clusters that depend on the order of rollouts
- learned scores
- the importance ratios of whole turns in GRAFT and GAGPO, which belong to the loss
"""

from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.state_graph.settings import Settings

if TYPE_CHECKING:
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context) -> "StateGraphCredit":
    """Make the assigner, which may read hidden states of the context's policy.

    The import is here because it loads scipy, which reading a study does not need.
    """
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

    return StateGraphCredit(settings, context)
