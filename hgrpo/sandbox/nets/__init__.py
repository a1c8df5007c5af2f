"""Small networks with a leading seed axis, one flat row of weights per seed.

A net is a frozen description; its weights are a tensor [S, P] with P parameters per seed. To copy a
policy, copy the tensor. To get per-sample gradients, repeat the row, so that each sample is its own
seed.
"""
