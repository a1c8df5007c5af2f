"""Formulas of update rules: losses, weights, advantages and divergences, and the rules themselves.

An update rule is one class: its fields are its settings, its method `term` is its loss in the
sandbox, and its method `terms` or `loss` is that of agents. Its formulas stand in the same file;
`rule` documents the class. `kinds` finds rules by name, so a new rule is a new file, and a study or
a method that names it.

Formulas are pure functions of log-probs, behaviour log-probs, advantages and rewards. Most are
elementwise: their tensors have equal shapes, one entry per sampled token. A function that compares
the rollouts of a group takes the axis `dim` along which a group lies. Functions whose names end in
`_weights` return numbers w without a gradient; the loss of a token is then `pg.policy_gradient`,
which is -w logprobs. `batch` names the axes of a batch of the sandbox.

Importing a module of this package loads no PyTorch.
"""
