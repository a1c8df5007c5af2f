"""Small networks that are evaluated for many seeds at once.

A net is an immutable object that describes the architecture and holds no weights. The weights of
S seeds are a separate tensor [S, P] with P parameters per seed. To compute per-sample gradients,
repeat a seed's weights once per sample, so that each sample is treated as a seed.
"""
