"""The training loop: evaluate, sample, update, log; all seeds in one tensor program."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.sandbox.adam import Adam, clip_rows
from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.declared import PACKAGE
from hgrpo.sandbox.opd.diagnostics import diagnose
from hgrpo.sandbox.opd.evaluate import examine
from hgrpo.sandbox.opd.settings import OpdSettings, Phase
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.rollout import Rollout

_LARGEST_NORM = 1.0

Row = dict[str, float | int | str]


class Trainer:
    """Trains one arm; `rows` is its log, one row for each evaluation and seed."""

    def __init__(self, settings: OpdSettings):
        self.settings = settings
        self.task = DistillTask(settings)
        self.policy = self.task.sequences.policy()
        self.weights = self.policy.init(settings.seeds)
        self.adam = Adam(self.weights, settings.lr)
        self.step = 0
        self.rows: list[Row] = []

    @property
    def phase(self) -> Phase:
        """The phase of the next step."""
        return [phase for phase in self.settings.phases if phase.start <= self.step][-1]

    @property
    def evaluates(self) -> bool:
        """Whether the next step evaluates first: on schedule, and where a phase begins."""
        return self.step % self.settings.eval_every == 0 or self.step == self.phase.start

    def run(self, advance: Callable[[], object] = lambda: None) -> list[Row]:
        """Train all steps, and evaluate once more; `advance` is called after each step.

        Raises:
            TrainingError: a loss or a gradient is not finite.
        """
        while self.step < self.settings.num_steps:
            self.take_step()
            advance()
        return self.finish()

    def finish(self) -> list[Row]:
        """Evaluate after the last step; return the log."""
        self._log(self._examine())
        return self.rows

    def take_step(self) -> None:
        """Sample a batch and update on it; evaluate before, if it is time."""
        s, due = self.settings, self.evaluates
        found = self._examine() if due else {}
        batch = acquire.sample(s, self.task, self.policy, self.weights, self.step)
        for epoch in range(s.inner_epochs):
            columns = self._update(batch, due and epoch == 0)
            if epoch == 0:
                described = columns
        if due:
            self._log({**described, **columns, **found})
        self.step += 1

    def state(self) -> dict[str, object]:
        """What an interrupted run needs to go on as if it had not been; see `load_state`."""
        return {
            "weights": self.weights.clone(),
            "adam": self.adam.state(),
            "step": self.step,
            "rows": list(self.rows),
        }

    def load_state(self, state: Mapping[str, object]) -> None:
        """Go on where `state` was taken, from a trainer whose settings agree up to that step."""
        self.weights = state["weights"].clone()
        self.adam.load_state(state["adam"])
        self.step = state["step"]
        self.rows = list(state["rows"])

    def _update(self, batch: Rollout, describe: bool) -> dict[str, Tensor]:
        """One update of all seeds; columns of the log, [S] each."""
        phase = self.phase
        weights = self.weights.detach().requires_grad_()
        seen = acquire.see(batch, self.policy, weights)
        term = phase.declared.load(PACKAGE, phase.declared.term)(seen, phase.rule_settings)
        (gradient,) = torch.autograd.grad(term.loss.sum(), weights)
        clipped, norm = clip_rows(gradient, _LARGEST_NORM)
        self._check(term.loss, norm)
        self.adam.step(self.weights, clipped, torch.ones(len(norm), dtype=torch.bool))
        columns = {"loss": term.loss.detach(), **term.metrics, "grad_norm": norm}
        if describe:
            columns["reward"] = batch.rewards.flatten(1).mean(1)
            columns |= diagnose(seen, self.settings.overlap)
        return columns

    def _check(self, loss: Tensor, norm: Tensor) -> None:
        wrong = ~(loss.isfinite() & norm.isfinite())
        if bool(wrong.any()):
            seed = self.settings.seeds[int(wrong.nonzero()[0])]
            raise TrainingError(
                f"{self.settings.task}, {self.phase.method}, seed {seed}, step {self.step}: the "
                "loss or its gradient is not finite; lower lr"
            )

    def _examine(self) -> dict[str, Tensor]:
        s, updates = self.settings, self.step * self.settings.inner_epochs
        spent = {
            "rollouts": self.step * s.batch_size,
            "tokens": self.step * s.batch_size * s.seq_len,
            "updates": updates,
        }
        found = examine(s, self.task, self.policy, self.weights, self.step)
        return found | {name: torch.full((len(s.seeds),), n) for name, n in spent.items()}

    def _log(self, columns: Mapping[str, Tensor]) -> None:
        phase = self.phase
        values = {name: column.tolist() for name, column in columns.items()}
        for index, seed in enumerate(self.settings.seeds):
            head = {"step": self.step, "phase": phase.name}
            own = {name: column[index] for name, column in values.items()}
            tail = {"seed": seed, "method": phase.method, "task": self.settings.task}
            self.rows.append({**head, **own, **tail})
