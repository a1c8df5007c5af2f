"""The sandbox: small experiments that compare update rules.

The sandbox has four pieces: `rl`, `opd`, `vpo` and `pedagogy`. `studies` compares arms of any
piece. The pieces share these modules:

- `draws`: uniform draws and initial weights from named random streams (seed, purpose, step). Arms
  with the same seed have the same data and initial weights, and results do not depend on evaluation
  intervals or on the order of arms.
- `nets`: `MLP` and `Transformer`. The weights of all seeds are one tensor [S, P], and copying this
  tensor copies a policy, e.g. to use it as a teacher.
- `policies`: policies that use these nets.
- `learner`: trainable weights. Adam and gradient clipping are separate for each seed.
- `trainer`: the loop over steps, and the log. An interrupted run starts from the beginning.
- `run_settings`, `command_line`, `single_runs`, `old_flags`: settings, flags and commands.
- `tasks`: sequence tasks that `rl` and `opd` share.

Update rules, their settings and formulas are in `hgrpo.formulas`. Its module `batch` defines a
batch for all seeds, with axes S seeds, N groups, K rollouts, M slots or segments and T tokens.
`mask` selects the tokens used for training, and `keep` selects the rollouts. A rule maps a `Seen`,
i.e. a batch evaluated under the current weights, to a `Term` with the loss of each seed, [S], and
metrics for the log. Losses are summed over seeds before differentiation. Because seeds share no
weights, each seed gets its own gradient.

A new piece is a package with two modules. `settings` contains the pydantic model of a run and the
requirements of rules (`NEEDS`). `train` contains the trainer; `vpo.train` is the shortest example.
Register the piece in `studies.pieces` and `single_runs.COMMANDS`, and set `piece` in its rules.

To keep planning and checks fast, the modules `settings`, `run_settings`, `command_line`,
`single_runs`, `studies.pieces` and `studies.study` do not import torch.
"""
