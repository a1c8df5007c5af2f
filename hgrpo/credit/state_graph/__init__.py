"""Credit from the graph of states that a group's rollouts share: one assigner with knobs.

The rollouts of a task meet in states. What other rollouts did there next, and how they ended, says
what an action was worth. These methods are settings of the knobs: GiGPO (arXiv 2505.10978), HGPO
(arXiv 2602.22817), SALT (arXiv 2510.20022), GraphGPO (arXiv 2605.26684), G2PO (arXiv 2606.22995),
CRBC, GRAFT and GraphHCA (2026).

    advantage_t = w_traj * A_traj + sum_j w_j * norm_j(credit_j(value_j(graph(key_j))))

Left out: the memory of edges and outcomes of earlier updates with its task scheduler (TIGPO, arXiv
2609.03383), importance ratios of whole turns (GRAFT, GAGPO; they belong to the loss), clusters that
depend on the order of rollouts, and learned scores.
"""

from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.state_graph.settings import Settings

if TYPE_CHECKING:
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context) -> "StateGraphCredit":
    """The assigner; it does not use `context`.

    scipy is imported here, because reading a study does not need it.
    """
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

    return StateGraphCredit(settings)
