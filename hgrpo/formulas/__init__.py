"""Formulas of update rules: losses, weights, advantages and divergences, and the rules themselves.

An update rule is a class (see `rule` for the base class). Its fields are its settings. Its method
`term` computes the loss in the sandbox, and its method `terms` or `loss` computes the loss for
agents. Its formulas are in the same file. `kinds` finds rules by name, so to add a rule, add a file
and use the rule's name in a study or a method.

Formulas are pure functions of log-probs, behaviour log-probs, advantages and rewards. Most formulas
are elementwise on tensors of equal shapes, with one entry per sampled token. Functions that compare
the rollouts of a group take the group axis `dim`. Functions with the suffix `_weights` return
weights w without a gradient, with which the loss of a token is -w logprobs
(`pg.policy_gradient`). `batch` defines the axes of a batch in the sandbox.

Importing a module of this package does not load PyTorch.
"""
