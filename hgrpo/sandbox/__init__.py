"""The sandbox: small experiments that compare update rules, in four pieces.

Shared core of all pieces:

- `draws`: uniform draws and initial weights from stateless streams named by seed, purpose and step,
so that results do not depend on evaluation intervals or the order of arms, and arms of one seed
share data and initial weights. - `nets`: `MLP` and `Transformer`, frozen descriptions with weights
in one tensor [S, P]. A teacher or an initial policy is a copy of this tensor. `Transformer.extend`
samples with a cache. - `policies`: nets as policies, with `sample`, `greedy`, and `table` for
differentiable log-probs of all actions along given actions in one pass. - `command_line`: flags
from settings, outputs, PyTorch threads. `single_runs` has the commands that train one arm of a
piece, and `old_flags` the original's flags for rules' settings. - `run_settings`: common settings
of the pieces. - `learner`: a trainable policy with in-place Adam updates after gradient clipping,
separately per seed. - `trainer`: the loop over steps, and the log. An interrupted run starts over.
- `tasks`: sequence tasks shared by `rl` and `opd`.

Rules, their settings and formulas are in `hgrpo.formulas`, as is `batch`, a frozen dataclass for a
batch of all seeds with axes S seeds, N groups, K rollouts, M slots or segments and T tokens. `mask`
selects the trained tokens, and `keep` the trained rollouts. A term maps a `Seen`, a batch under the
current weights, to a `Term`: losses per seed, [S], and metrics for the log. Losses are summed over
seeds before differentiation; since seeds share no weights, each seed gets its own gradient.

A new piece is a package with the modules `settings` (a pydantic model of a run with its checks, and
`NEEDS` of rules, each with a function of the settings) and `train` (a trainer; `vpo.train` is the
shortest example). Register it in `studies.pieces` and `single_runs.COMMANDS`, and set `piece` of
its rules.

To keep planning and checks fast, the modules `settings`, `run_settings`, `command_line`,
`single_runs`, `studies.pieces` and `studies.study` do not import torch.

Pieces: `rl`, `opd`, `vpo`, `pedagogy`. `studies` compares arms of all of them.
"""
