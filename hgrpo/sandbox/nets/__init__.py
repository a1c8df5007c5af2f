"""Small networks with a leading axis of seeds: one flat row of weights a seed, batched products.

A net is a frozen description; its weights are a tensor [S, P], P numbers a seed. A copy of a policy
is a copy of that tensor. To get the gradient of every sample, repeat the row: each sample is then
its own seed.
"""
