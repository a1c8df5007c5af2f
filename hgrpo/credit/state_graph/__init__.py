"""Credit from the graph of states that a group's rollouts share, by one configurable assigner.

Rollouts of a task often reach the same state. An action's value there is estimated from the ends of
the rollouts that took it. The settings can express these methods:
- GiGPO, "Group-in-Group Policy Optimization for LLM Agent Training",
  https://arxiv.org/abs/2505.10978
- HGPO, "Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
  https://arxiv.org/abs/2602.22817
- SALT, "Step-level Advantage Assignment for Long-horizon Agents via Trajectory Graph",
  https://arxiv.org/abs/2510.20022
- GraphGPO, "Beyond Trajectory-Level Attribution: Graph-Based Credit Assignment for Agentic
  Reinforcement Learning", https://arxiv.org/abs/2605.26684
- G2PO, "Group-Graph Policy Optimization for Long-Horizon Agentic Reinforcement Learning",
  https://arxiv.org/abs/2606.22995
- ECPO, "When Denser Credit Is Not Enough: Evidence-Calibrated Policy Optimization for Long-Horizon
  LLM Agent Training", https://arxiv.org/abs/2606.05885
- BiPACE, "Bisimulation-Guided Policy Optimization with Action Counterfactual Estimation for LLM
  Agents", https://arxiv.org/abs/2606.25556
- GAGPO, "Generalized Advantage Grouped Policy Optimization", https://arxiv.org/abs/2605.13217
- RTMC, "Step-Level Credit Assignment via Rollout Trees", https://arxiv.org/abs/2604.11037
- CRBC, GRAFT and GraphHCA (2026), built from a description; we know no paper

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
