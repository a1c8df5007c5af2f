"""Objectives: pure functions of log-probs, behaviour log-probs, advantages and rewards.

One module holds one idea, or one rule. Most functions are elementwise: their tensors have equal
shapes, one entry per sampled token. A function that compares the rollouts of a group takes the axis
`dim` along which a group lies. A function returns per-token terms of a loss, weights of a loss's
terms, targets, or a diagnostic.

The pipeline imports `clip`, `kl`, `importance` and `reduction`. The sandbox (`hgrpo.sandbox`) uses
these and the rules. Functions whose names end in `_weights` return numbers w without a gradient.
The loss of a token is then `pg.policy_gradient(logprobs, w)`, which is -w logprobs.
"""
