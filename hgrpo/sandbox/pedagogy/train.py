"""The training loop of pedagogy: evaluate, let the teacher explore, let the student imitate."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from hgrpo.formulas.batch import Rollout, Seen, Term, seed_mean
from hgrpo.sandbox import draws
from hgrpo.sandbox.learner import Learner
from hgrpo.sandbox.pedagogy.arithmetic import HintedArithmetic, View
from hgrpo.sandbox.pedagogy.evaluate import Examiner
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.trainer import ArmTrainer, Columns


class Trainer(ArmTrainer):
    """Trains one arm. Student and teacher start with equal weights but have different prompts."""

    settings: PedagogySettings

    def __init__(self, settings: PedagogySettings):
        super().__init__(settings)
        s = settings
        self.task = HintedArithmetic(s)
        self.policy = self.task.policy()
        first = self.policy.init(s.seeds)
        self.learners["student"] = Learner(first, s.student_lr, s.max_grad_norm, s.seeds)
        self.rule = s.rule
        if self.rule.teaches:
            self.learners["teacher"] = Learner(
                first.clone(), s.teacher_lr, s.max_grad_norm, s.seeds
            )
        self.examiner = Examiner(
            self.task, self.policy, s.seeds, s.group_size, s.compat == "reference"
        )

    def take_step(self) -> None:
        """Make all updates of one training step. If an evaluation is due, evaluate first."""
        s = self.settings
        due = self.step % s.eval_every == 0
        columns = self.examine() if due else {}
        for part in range(s.teacher_steps if self.rule.teaches else 0):
            columns |= self._explore("teacher", part)
        for part in range(s.student_steps):
            columns |= (
                self._assimilate(part) if self.rule.teaches else self._explore("student", part)
            )
        if due:
            self.log(columns)
        self.step += 1

    @torch.no_grad()
    def sample(self, view: View, name: Sequence[object], groups: int, size: int) -> Rollout:
        """Sample `groups` groups of `size` rollouts from the student or teacher (`view`)."""
        s = self.settings
        questions = self.task.draw(s.seeds, "data", name, groups)
        uniform = draws.uniform(s.seeds, "action", name, (groups, size, 1, s.completion_len))
        done = self.policy.sample(self.learners[view].weights, questions.prompts[view], uniform)
        success = self.task.rewards(done.actions, questions.answers[:, :, None, None])[..., 0]
        return Rollout(
            inputs=questions.prompts,
            actions=done.actions,
            behaviour=done.logprobs,
            rewards=success,
            clean=success,
            mask=torch.ones_like(done.logprobs),
            keep=torch.ones_like(success),
            age=torch.zeros(len(s.seeds), dtype=torch.int64),
        )

    def see(self, batch: Rollout, view: View, weights: Tensor) -> Seen:
        """Compute the log-probs of the batch under `weights`, given the prompts of `view`."""
        table = self.policy.table(weights, batch.inputs[view], batch.actions)
        return Seen(batch, table, torch.zeros(()), torch.ones(batch.actions.shape[-1]))

    def lesson(self, batch: Rollout) -> tuple[Rollout, Columns]:
        """Replace rewards in the teacher's batch by rewards that depend on the frozen student."""
        with torch.no_grad():
            table = self.see(batch, "student", self.learners["student"].weights).table
            paid, metrics = self.rule.pay(batch.clean, table, batch.actions)
        return replace(batch, rewards=paid), metrics

    def examine(self) -> Columns:
        columns: Columns = {}
        for view, learner in self.learners.items():
            columns |= self.examiner.examine(learner.weights, view, self.step)
            columns[f"{view}_updates"] = learner.updates
        return columns | self._spent()

    def head(self) -> dict[str, float | int | str]:
        return {"step": self.step, "method": self.settings.method, "task": self.task.name}

    def _explore(self, view: View, part: int) -> Columns:
        """Update a policy on its own rollouts. The teacher's rewards are replaced by `lesson`."""
        s = self.settings
        # Student and teacher use the same random stream, and therefore the same inputs.
        batch = self.sample(view, (self.step, part), s.groups, s.group_size)
        metrics: Columns = {}
        if view == "teacher":
            batch, metrics = self.lesson(batch)
        for _ in range(s.inner_epochs):
            done = self._update(view, batch, self.rule.term)
        metrics |= {
            f"{view}_{name}": column
            for name, column in {
                "loss": done.loss,
                "reward": seed_mean(batch.rewards),
                **done.metrics,
                "mixed_group_rate": _varied(batch.clean),
                "varied_group_rate": _varied(batch.rewards),
            }.items()
        }
        return metrics

    def _assimilate(self, part: int) -> Columns:
        s = self.settings
        batch = self.sample("teacher", ("imitation", self.step, part), s.batch_size, 1)
        done = self._update("student", batch, self.rule.imitate)
        return {**done.metrics, "teacher_sample_task_reward": seed_mean(batch.clean)}

    def _update(self, view: View, batch: Rollout, term: Callable[[Seen], Term]) -> Term:
        where = f"pedagogy, {self.settings.method}, {view}, step {self.step}"
        done = self.learners[view].update(
            lambda weights: term(self.see(batch, view, weights)), where
        )
        return done.term

    def _spent(self) -> Columns:
        s = self.settings
        explored = s.teacher_steps if self.rule.teaches else s.student_steps
        imitated = s.student_steps if self.rule.teaches else 0
        filtered = self.rule.teaches and self.rule.imitated == "correct"
        rollouts = self.step * s.batch_size * (explored + imitated)
        checked = explored + (imitated if filtered else 0)
        return self.spent(
            {
                "rollouts": rollouts,
                "verifier_calls": self.step * s.batch_size * checked,
                "tokens": rollouts * s.completion_len,
            }
        )


def _varied(rewards: Tensor) -> Tensor:
    return (rewards.amax(-1) > rewards.amin(-1)).float().mean(1)
