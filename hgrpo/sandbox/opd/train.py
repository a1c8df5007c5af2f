"""The training loop of opd: evaluate, sample, update, log. All seeds are trained together."""

from torch import Tensor

from hgrpo.formulas.batch import Rollout, Term, seed_mean
from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.evaluate import diagnose, examine
from hgrpo.sandbox.opd.settings import OpdSettings, Phase
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.trainer import Columns, PolicyTrainer, ReadsOnce


class Trainer(PolicyTrainer):
    """Trains one arm."""

    settings: OpdSettings

    def __init__(self, settings: OpdSettings):
        super().__init__(settings)
        self.task = DistillTask(settings)
        policy = self.task.sequences.policy()
        self.begin(policy.init(settings.seeds), settings.lr)
        self.policy = ReadsOnce(policy, self.learner)

    @property
    def phase(self) -> Phase:
        return [phase for phase in self.settings.phases if phase.start <= self.step][-1]

    @property
    def evaluates(self) -> bool:
        """Whether an evaluation is due: on schedule, or because a phase starts."""
        return self.step % self.settings.eval_every == 0 or self.step == self.phase.start

    def take_step(self) -> None:
        """Sample a batch and update on it. If an evaluation is due, evaluate first."""
        s, due = self.settings, self.evaluates
        evaluation = self.examine() if due else {}
        batch = acquire.sample(s, self.task, self.policy, self.learner.leaf, self.step)
        for epoch in range(s.inner_epochs):
            columns = self._update(batch, due and epoch == 0)
            if epoch == 0:
                described = columns
        if due:
            self.log({**described, **columns, **evaluation})
        self.step += 1

    def examine(self) -> Columns:
        s = self.settings
        rollouts = self.step * s.batch_size
        return {
            **examine(s, self.task, self.policy, self.weights, self.step),
            **self.spent({"rollouts": rollouts, "tokens": rollouts * s.seq_len}),
            "updates": self.learner.updates,
        }

    def head(self) -> dict[str, float | int | str]:
        phase, task = self.phase, self.settings.task
        return {"step": self.step, "phase": phase.name, "method": phase.method, "task": task}

    def _update(self, batch: Rollout, describe: bool) -> Columns:
        s, phase = self.settings, self.phase

        def loss(weights: Tensor) -> Term:
            seen = acquire.see(batch, self.policy, weights)
            term = phase.rule.term(seen)
            more = diagnose(seen, s.overlap) if describe else {}
            return Term(term.loss, {**term.metrics, **more})

        done = self.learner.update(loss, f"{s.task}, {phase.method}, step {self.step}")
        columns = {"loss": done.term.loss, **done.term.metrics, "grad_norm": done.norms}
        if describe:
            columns["reward"] = seed_mean(batch.rewards)
        return columns
