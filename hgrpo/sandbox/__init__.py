"""The sandbox: small experiments that compare update rules, in four pieces.

The pieces are `rl`, `opd`, `vpo` and `pedagogy`. `studies` compares arms of all of them. The pieces
share these modules:

- `draws`: uniform draws and initial weights from random streams with a name (seed, purpose, step).
  Results therefore do not depend on evaluation intervals or on the order of arms, and arms with the
  same seed have the same data and initial weights.
- `nets`: `MLP` and `Transformer`, frozen descriptions whose weights are one tensor [S, P]. Copying
  this tensor copies a policy, e.g. as a teacher.
- `policies`: policies that use these nets.
- `learner`: trainable weights with Adam and gradient clipping, separately for each seed.
- `trainer`: the loop over steps, and the log. An interrupted run starts from the beginning.
- `run_settings`, `command_line`, `single_runs`, `old_flags`: settings, flags and commands.
- `tasks`: sequence tasks that `rl` and `opd` share.

Update rules, their settings and formulas are in `hgrpo.formulas`. Its module `batch` defines a
batch for all seeds, with axes S seeds, N groups, K rollouts, M slots or segments and T tokens.
`mask` selects the tokens, and `keep` the rollouts, that are used for training. A rule maps a
`Seen`, i.e. a batch under the current weights, to a `Term` with losses per seed, [S], and metrics
for the log. Losses are summed over seeds before differentiation. Because seeds share no weights,
each seed gets its own gradient.

A new piece is a package with two modules: `settings` contains the pydantic model of a run and the
requirements of rules (`NEEDS`), and `train` the trainer (`vpo.train` is the shortest example).
Register the piece in `studies.pieces` and `single_runs.COMMANDS`, and set `piece` in its rules.

To keep planning and checks fast, the modules `settings`, `run_settings`, `command_line`,
`single_runs`, `studies.pieces` and `studies.study` do not import torch.
"""
