"""Small networks that evaluate many seeds at once; each seed has its own row of weights.

A net is a frozen description. Its weights are a separate tensor [S, P] with P parameters per seed,
so a policy is copied by copying this tensor. For per-sample gradients, repeat a row once per
sample: each sample is then treated as a seed.
"""
