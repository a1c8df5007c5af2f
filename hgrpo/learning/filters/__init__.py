"""Filter that selects the groups of a batch, and their trajectories, for the update.

The filter is that of RAGEN (Wang et al. 2025, "RAGEN: Understanding Self-Evolution in LLM Agents
via Multi-Turn Reinforcement Learning", https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). If the returns in a group barely differ, its policy gradient is
weak, but the gradients of its entropy bonus and KL penalty are not. The filter computes a score for
each group. It keeps the groups with the largest or smallest scores, or a share of each group's
trajectories. `batch` implements the selection, the weights and the log entries.

A batch has G groups. Each group has K trajectories of one task. All functions are pure.
Trajectories are masked instead of removed, and are not duplicated. Ties are broken in favour of
earlier groups and trajectories.
"""
