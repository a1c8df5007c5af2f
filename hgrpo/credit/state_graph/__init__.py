"""Credit from the graph of states that a group's rollouts share: one assigner with knobs.

The rollouts of a task meet in states. What the others did next, and how they ended, says what an
action was worth. A method is a setting of the knobs: GiGPO (arXiv 2505.10978), HGPO (2602.22817),
SALT (2510.20022), GraphGPO (2605.26684), G2PO (2606.22995), CRBC, GRAFT and GraphHCA (2026).

    advantage_t = w_traj * A_traj + sum_j w_j * norm_j(credit_j(value_j(graph(key_j))))

Left out: the memory of earlier updates' edges and outcomes, with its task scheduler (TIGPO,
2609.03383), importance ratios of whole turns (GRAFT, GAGPO: they belong to the loss), clusters
that depend on the order of rollouts, and learned scores.
"""

from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.state_graph.settings import Settings

if TYPE_CHECKING:
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

__all__ = ["DEMANDS", "Settings", "make"]

_WHY = "its credit is the whole advantage, see credit."
DEMANDS = {
    "alpha": (0.0, f"{_WHY}trajectory.weight"),
    "turn_norm": ("none", f"{_WHY}terms"),
    "group_norm": ("std", f"{_WHY}trajectory.mode"),
}


def make(settings: Settings, context: Context) -> "StateGraphCredit":
    """The assigner; it reads trajectories alone, so `context` is not used.

    scipy is imported here, since reading a study does not need it.
    """
    from hgrpo.credit.state_graph.assigner import StateGraphCredit

    return StateGraphCredit(settings)
