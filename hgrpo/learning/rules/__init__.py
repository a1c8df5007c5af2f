"""Update rules that train agents: what an arm's key `objective` can name, a module a rule.

A rule's module has `Settings`, a subclass of `RuleSettings`, and `make(settings, training)`, which
returns a `TokenRule` or a `GroupRule`. The formulas stand in `hgrpo.learning.objectives`, where the
sandbox uses them too. Reading a study imports these modules, so importing them imports no torch.
"""
