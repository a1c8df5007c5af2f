"""The training loop of rl: evaluate, sample, select rollouts, update, log."""

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions, Rollout, Seen, seed_mean
from hgrpo.formulas.full_kl import collision_probability
from hgrpo.formulas.group import leave_one_out, mixed_rate, mixed_reward_rate
from hgrpo.sandbox import draws
from hgrpo.sandbox.learner import Update
from hgrpo.sandbox.rl import acquire
from hgrpo.sandbox.rl.acquire import false_rates
from hgrpo.sandbox.rl.diagnostics import (
    entropy_columns,
    gradient_columns,
    ratio_columns,
    token_advantages,
)
from hgrpo.sandbox.rl.evaluate import Examiner
from hgrpo.sandbox.rl.replay import Supply
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import Task, can_list, every_output, make_task
from hgrpo.sandbox.trainer import Columns, PolicyTrainer, ReadsOnce

# A seed stops after this number of consecutive batches in which every group has equal rewards.
_PATIENCE = 10
# Gradients are analysed once per this number of evaluations.
_DIAGNOSED = 5
_CONSTANT = 0.5


class Trainer(PolicyTrainer):
    """Trains one arm."""

    settings: RlSettings

    def __init__(self, settings: RlSettings, task: Task | None = None):
        super().__init__(settings)
        self.task = task or make_task(settings)
        policy = self.task.policy()
        self.begin(policy.init(settings.seeds), settings.lr)
        self.policy = ReadsOnce(policy, self.learner)
        self.first = self.weights.clone()
        self.supply = Supply(settings)
        self.rule = settings.rule
        self.examiner = Examiner(
            self.task, self.policy, settings.seeds, self.first, settings.compat == "reference"
        )
        self.futile = torch.zeros(len(settings.seeds), dtype=torch.int64)
        self.stopped = torch.full((len(settings.seeds),), -1)

    def take_step(self) -> None:
        """Sample a batch and update on it. If an evaluation is due, evaluate first."""
        s = self.settings
        due = self.step >= s.delay and (self.step - s.delay) % s.eval_every == 0
        evaluation = self.examine() if due else {}
        fresh = acquire.sample(s, self.task, self.policy, self.learner.leaf, self.step)
        batch, metrics = self.supply.next(fresh, self.step)
        self._count_futile(batch)
        batch, screened = self.screened(batch)
        metrics |= screened
        if due:
            metrics |= self._describe(batch)
        diagnosed = due and s.diagnostics and self._evaluations % _DIAGNOSED == 0
        if diagnosed:
            metrics |= gradient_columns(self, batch)
        before = self._look(batch) if due and s.entropy_diagnostics else None
        for _ in range(s.inner_epochs - 1):
            self._update(batch)
        if diagnosed:
            # Without delay and replay, importance ratios are 1 until the first update on a batch.
            metrics |= ratio_columns(self.rule, self._look(batch))
        update = self._update(batch)
        if before:
            after = self._look(batch).table
            metrics |= entropy_columns(before, after, token_advantages(self, before))
        if due:
            self.log(evaluation | metrics | _columns(update))
        self.step += 1

    def examine(self) -> Columns:
        """Evaluation columns, costs so far, and each seed's last step (-1 while it is active)."""
        s = self.settings
        sampled = s.batch_size * torch.where(self.stopped < 0, self.step, self.stopped + 1)
        calls = s.group_size * self.task.horizon if self.rule.candidates else 1
        return {
            **self.examiner.examine(self.weights, self.step),
            "rollouts": sampled,
            "verifier_calls": sampled * calls,
            "tokens": sampled * self.task.horizon,
            "updates": self.learner.updates,
            "stopped_at": self.stopped,
        }

    def head(self) -> dict[str, float | int | str]:
        return {"step": self.step, "method": self.settings.method, "delay": self.settings.delay}

    def see(self, batch: Rollout, weights: Tensor) -> Seen:
        """Evaluate the batch under `weights`, as input of the rule."""
        inputs = batch.inputs[acquire.VIEW]
        table = self.policy.table(weights, inputs, batch.actions)
        oracle = None
        if self.rule.oracle:
            oracle = self.policy.table(weights, inputs, batch.labels[:, :, None, None])
        start = baseline(self.settings, batch, table)
        return Seen(batch, table, start, self.task.scored, oracle)

    def screened(self, batch: Rollout) -> tuple[Rollout, dict[str, Tensor]]:
        """Restrict the batch to rollouts that the rule's `screen` selects; also return metrics."""
        if not self.rule.screens:
            return batch, {}
        shape = (batch.rewards[0].numel(),)
        uniform = draws.uniform(self.settings.seeds, "screen", (self.step,), shape)
        keep, metrics = self.rule.screen(batch, uniform)
        return batch.restricted(keep), metrics

    @property
    def _evaluations(self) -> int:
        return (self.step - self.settings.delay) // self.settings.eval_every

    @torch.no_grad()
    def _look(self, batch: Rollout) -> Seen:
        return self.see(batch, self.weights)

    def _update(self, batch: Rollout) -> Update:
        return self.learner.update(
            lambda weights: self.rule.term(self.see(batch, weights)),
            f"{self.settings.task}, {self.settings.method}, step {self.step}",
            active=self.stopped < 0,
        )

    def _count_futile(self, batch: Rollout) -> None:
        """Stop seeds with too many consecutive batches in which every group has equal rewards."""
        if "mixed" not in batch.extras:
            return
        mixed = batch.extras["mixed"].amax(1) > 0
        self.futile = torch.where(mixed, 0, self.futile + 1)
        stops = (self.futile >= _PATIENCE) & (self.stopped < 0)
        self.stopped = torch.where(stops, self.step, self.stopped)

    def _describe(self, batch: Rollout) -> dict[str, Tensor]:
        labels = batch.labels[:, :, None, None]
        right = self.task.right(batch.actions, labels)[..., 0]
        columns = {
            "reward": seed_mean(batch.rewards),
            "clean_reward": seed_mean(batch.clean),
            **false_rates(batch.rewards, batch.clean, right),
        }
        if "mixed" in batch.extras:
            mixed = batch.extras["mixed"]
            columns["mixed_group_rate"] = mixed.mean(1)
            columns["retained_group_rate"] = batch.keep.amax(-1).mean(1)
            columns["group_fallback"] = (mixed.amax(1) == 0).float()
            predicted = self._predicted_mixed_rate(batch)
            if predicted is not None:
                columns["predicted_mixed_rate"] = predicted.mean(1)
        return columns

    @torch.no_grad()
    def _predicted_mixed_rate(self, batch: Rollout) -> Tensor | None:
        """Probability [S, N] that not all rewards of a group are equal; None if unknown."""
        s = self.settings
        if s.reward_noise or s.kl_weight:
            return None
        if batch.expected is not None and self.task.binary:
            return mixed_rate(batch.expected, batch.group_size)
        if s.delay or not can_list(self.task):
            return None
        questions = Questions(batch.inputs[acquire.VIEW], batch.labels)
        outcomes = every_output(self.task, self.policy, self.weights, questions)
        return mixed_reward_rate(*outcomes, batch.group_size)


def _columns(update: Update) -> Columns:
    return {"loss": update.term.loss, "grad_norm": update.norms, **update.term.metrics}


def baseline(settings: RlSettings, rollout: Rollout, table: Tensor) -> Tensor:
    """The configured baseline, detached from the graph; broadcastable to [S, N, K, M, T].

    Args:
        table: log-probs under the current weights, [S, N, K, M, T, V].
    """
    name, stated = settings.baseline, rollout.expected
    if stated is not None and (
        name in ("expected", "exact")
        or (settings.compat == "reference" and name in ("zero", "constant"))
    ):
        return stated[..., None, None, None]
    if name in ("zero", "constant"):
        value = _CONSTANT if name == "constant" else 0.0
        return rollout.behaviour.new_full((1,) * rollout.behaviour.dim(), value)
    if name == "group":
        axis = 2 if rollout.group_size > 1 else 1
        return leave_one_out(rollout.rewards, axis)[..., None, None]
    return collision_probability(table)
