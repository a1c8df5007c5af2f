"""Formulas of update rules: losses, weights, advantages and divergences, and the rules themselves.

An update rule is a class. Its fields are its settings, its method `term` computes its loss in the
sandbox, and its method `terms` or `loss` computes its loss for agents. Its formulas are in the same
file. See `rule` for the base class. `kinds` looks rules up by name, so a new rule requires only a
new file, and its name in a study or a method.

Formulas are pure functions of log-probs, behaviour log-probs, advantages and rewards. Most are
elementwise on tensors of equal shapes, with one entry per sampled token. Functions that compare the
rollouts of a group take the group axis `dim`. Functions with the suffix `_weights` return weights w
without a gradient; the loss of a token is then -w logprobs, see `pg.policy_gradient`. `batch`
defines the axes of a batch in the sandbox.

Importing a module of this package does not load PyTorch.
"""
