"""The training loop of vpo: evaluate, sample sets, score them, update, log."""

import torch
from torch import Tensor

from hgrpo.formulas.batch import Rollout, Seen, Term, seed_mean
from hgrpo.sandbox import draws
from hgrpo.sandbox.trainer import Columns, PolicyTrainer
from hgrpo.sandbox.vpo.evaluate import Examiner
from hgrpo.sandbox.vpo.pareto import GOLD, ParetoFront
from hgrpo.sandbox.vpo.policy import SetPolicy
from hgrpo.sandbox.vpo.settings import VpoSettings

VIEW = "policy"


class Trainer(PolicyTrainer):
    """Trains one arm."""

    settings: VpoSettings

    def __init__(self, settings: VpoSettings):
        super().__init__(settings)
        s = settings
        self.task = ParetoFront(s.num_prompts)
        self.policy = SetPolicy(s.num_prompts, s.num_candidates, self.task.actions, s.hidden)
        self.begin(self.policy.init(s.seeds), s.lr)
        self.rule = s.rule
        self.examiner = Examiner(self.task, self.policy, s.seeds, s.compat == "reference")

    def take_step(self) -> None:
        """If an evaluation is due, evaluate. Then sample and score a batch of sets, and update."""
        s = self.settings
        due = self.step % s.eval_every == 0
        evaluation = self.examine() if due else {}
        exact = self.exact_gradient() if due else None
        batch = self.sample()
        for epoch in range(s.inner_epochs):
            done = self.learner.update(
                lambda weights: self.loss(batch, weights), f"vpo, {s.method}, step {self.step}"
            )
            if due and epoch == 0:
                cosine = torch.cosine_similarity(-done.gradient.double(), exact, dim=1)
                evaluation["cos_set_score"] = cosine
        if due:
            term = done.term
            self.log({"loss": term.loss} | self._describe(batch) | dict(term.metrics) | evaluation)
        self.step += 1

    @torch.no_grad()
    def sample(self) -> Rollout:
        """Sample a batch of sets, with scores and credit per slot."""
        s = self.settings
        prompts = self.task.draw(s.seeds, self.step, s.groups)
        shape = (s.groups, s.group_size, s.num_candidates, 1)
        uniform = draws.uniform(s.seeds, "action", (self.step,), shape)
        sampled = self.policy.sample(self.weights, prompts, uniform)
        vectors = self.task.rewards(prompts, sampled.actions)
        scores, credit = self.rule.score_of(vectors, self.preferences())
        return Rollout(
            inputs={VIEW: prompts},
            actions=sampled.actions,
            behaviour=sampled.logprobs,
            rewards=scores,
            clean=scores,
            mask=torch.ones_like(sampled.logprobs),
            keep=torch.ones_like(scores),
            age=torch.zeros(len(s.seeds), dtype=torch.int64),
            extras={"vectors": vectors, "credit": credit},
        )

    def loss(self, batch: Rollout, weights: Tensor) -> Term:
        """The rule's term for the batch under `weights`."""
        table = self.policy.table(weights, batch.inputs[VIEW], batch.actions)
        nothing = torch.zeros(())
        return self.rule.term(Seen(batch, table, nothing, torch.ones(1)))

    def preferences(self) -> Tensor:
        """Weights [S, N, W, 2] ~ Dirichlet(1, 1), shared by the sets of a group."""
        s = self.settings
        shape = (s.groups, getattr(s.rule, "draws", 1))
        place = draws.uniform(s.seeds, "weight", (self.step,), shape)
        return torch.stack([place, 1.0 - place], -1)

    def exact_gradient(self) -> Tensor:
        """Gradient [S, P] of the expected set score over all prompts."""
        weights = self.weights.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(self.examiner.expected_set_score(weights).sum(), weights)
        return gradient.double()

    def examine(self) -> Columns:
        sets = self.step * self.settings.batch_size
        answers = sets * self.settings.num_candidates
        return {
            **self.examiner.examine(self.weights, self.step),
            **self.spent({"rollouts": sets, "answers": answers}),
            "updates": self.learner.updates,
        }

    def head(self) -> dict[str, float | int | str]:
        return {"step": self.step, "method": self.settings.method, "task": self.settings.task}

    def _describe(self, batch: Rollout) -> dict[str, Tensor]:
        gold = (batch.extras["vectors"] @ GOLD).amax(-1)
        mixed = batch.rewards.amax(-1) > batch.rewards.amin(-1)
        return {
            "reward": seed_mean(batch.rewards),
            "gold_set_reward": seed_mean(gold),
            "mixed_group_rate": mixed.float().mean(1),
        }
