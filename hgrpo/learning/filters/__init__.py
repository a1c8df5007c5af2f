"""Which groups of a batch, and which of their trajectories, the update learns from.

The filter is that of RAGEN (Wang et al. 2025, "RAGEN: Understanding Self-Evolution in LLM Agents
via Multi-Turn Reinforcement Learning", https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). Where returns barely differ within a group, its task gradient
is weak, but the gradient of entropy bonus and KL penalty is not. The filter gives each group a
score and keeps the groups of the largest or smallest scores (`groups`), or a share of
the trajectories of each group. `batch` applies these steps, scales the advantages and makes the log
entries.

A batch has G groups; a group has K trajectories of one task. All functions are pure. Dropped
trajectories are masked; no trajectory is duplicated. Ties go by the order of groups, and within a
group by the order of trajectories.
"""
