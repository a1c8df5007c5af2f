"""Filter that selects the groups of a batch, and their trajectories, for the update.

The filter is that of RAGEN (Wang et al. 2025, "RAGEN: Understanding Self-Evolution in LLM Agents
via Multi-Turn Reinforcement Learning", https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). If returns barely differ within a group, the group's task
gradient is weak, but its gradients of the entropy bonus and the KL penalty are not. The filter
assigns each group a score. It keeps the groups with the largest or smallest scores, or a share of
the trajectories of each group. `batch` implements the selection, weights of groups and log entries.

A batch has G groups; a group has K trajectories of one task. All functions are pure. Dropped
trajectories are masked, and no trajectory is duplicated. Ties are broken in favour of earlier
groups and, within a group, earlier trajectories.
"""
