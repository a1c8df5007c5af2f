"""Small networks that evaluate many seeds at once; each seed has its own row of weights.

A net is a frozen description without weights. The weights are a separate tensor [S, P] with P
parameters per seed, so copying this tensor copies a policy. To compute per-sample gradients, repeat
a row once per sample, so that each sample is treated as a seed.
"""
