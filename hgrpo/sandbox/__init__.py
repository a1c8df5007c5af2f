"""The sandbox of update rules: which samples deserve gradient, in pieces small enough to watch it.

The core, which every piece builds on:

- `draws`: uniform draws and first weights from streams that are named by seed, purpose and step.
  No generator has a state, so a changed cadence of evaluation or order of arms changes no number,
  and arms of one seed share data and first weights.
- `nets`: `MLP` and `Transformer`, frozen descriptions whose weights are one tensor [S, P]. A
  teacher or a first policy is a copy of that tensor. `Transformer.extend` samples with a cache.
- `policies`: a net that acts. `sample` and `greedy` act, `table` has the log-probs of every action
  along actions in one pass, with a gradient.
- `command_line`: flags from settings, outputs, PyTorch's threads. `single_runs` has the command of
  each piece that trains one arm, and `old_flags` the original's spellings of rules' settings.
- `run_settings`: common settings of the pieces.
- `learner`: a policy that learns, and its update: Adam, which changes the weights in place, after a
  clip of the gradient's norm, for each seed by itself.
- `trainer`: the loop over steps, and the log. An interrupted run starts over.
- `tasks`: the tasks of sequences, which `rl` and `opd` share.

Rules, their settings and their formulas stand in `hgrpo.formulas`, and so does `batch`: a batch of
all seeds, with the axes S seeds, N groups, K rollouts, M slots or segments and T tokens, as a
frozen dataclass. Its `mask` selects the tokens that train, and its `keep` the rollouts. A term
takes a `Seen`, a batch under the current weights, and returns a `Term`: the loss of each seed, [S],
and metrics for the log. The losses of all seeds are added up before they are differentiated; no
weight belongs to two seeds, so each seed gets its own gradient.

A new piece is a package of modules: `settings` (a pydantic model of a run with its checks, and
`NEEDS` of rules, each with a function of the settings) and `train` (a trainer that takes a step;
`vpo.train` is the shortest example). `studies.pieces` and `single_runs.COMMANDS` name it. Its rules
name it as their `piece`.

Planning and checks are quick because they load no torch: modules named `settings`, `run_settings`,
`command_line`, `single_runs`, and `pieces` and `study` of `studies` import none.

Pieces: `rl`, `opd`, `vpo`, `pedagogy`. `studies` compares arms of all of them.
"""
