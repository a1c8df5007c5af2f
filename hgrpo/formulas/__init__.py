"""Update rules and their formulas: losses, weights, advantages and divergences.

An update rule is a class (see `rule.Rule` for the base class), and its settings are the fields of
the class. The method `term` computes the loss in the sandbox; `terms` or `loss` computes the loss
for agents. To add a rule, add a file to this package, and use the name of the class in a study or a
method. Formulas are in the same file as the rules that use them.

Formulas are pure functions of log-probs, behaviour log-probs, advantages and rewards. Most formulas
are elementwise on tensors of equal shapes, with one entry per sampled token. If a formula compares
the rollouts of a group, its argument `dim` is the group axis. Functions with the suffix `_weights`
return weights w without a gradient; the loss of a token is then -w * log-prob
(`pg.policy_gradient`). See `batch` for the axes of a batch in the sandbox.

Importing a module of this package does not load PyTorch.
"""
