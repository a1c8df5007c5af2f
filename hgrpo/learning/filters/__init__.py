"""Filter that selects the groups of a batch, and their trajectories, for the update.

The filter is that of RAGEN (Wang et al. 2025, "RAGEN: Understanding Self-Evolution in LLM Agents
via Multi-Turn Reinforcement Learning", https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). If returns barely differ within a group, its task gradient is
weak, but its gradients of the entropy bonus and of the KL penalty are not. The filter computes a
score for each group. It keeps the groups with the largest or smallest scores, or a share of each
group's trajectories. `batch` implements the selection, the weights of groups and the log entries.

A batch has G groups of K trajectories of one task. All functions are pure. Trajectories are masked
instead of removed, and are not duplicated. Ties are broken in favour of earlier groups and
trajectories.
"""
