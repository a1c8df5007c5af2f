"""The training loop of vpo: evaluate, sample sets, score them, update, log."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hgrpo.sandbox import draws
from hgrpo.sandbox.learner import Learner
from hgrpo.sandbox.rollout import Rollout
from hgrpo.sandbox.rows import Row, seed_rows
from hgrpo.sandbox.seen import Seen, Term
from hgrpo.sandbox.vpo.declared import PACKAGE
from hgrpo.sandbox.vpo.evaluate import Examiner
from hgrpo.sandbox.vpo.pareto import GOLD, ParetoFront
from hgrpo.sandbox.vpo.policy import SetPolicy
from hgrpo.sandbox.vpo.settings import VpoSettings

VIEW = "policy"
_LARGEST_NORM = 1.0


class Trainer:
    """Trains one arm; `rows` is its log, one row for each evaluation and seed."""

    def __init__(self, settings: VpoSettings):
        s = self.settings = settings
        self.task = ParetoFront(s.num_prompts)
        self.policy = SetPolicy(s.num_prompts, s.num_candidates, self.task.actions, s.hidden)
        self.learner = Learner(self.policy.init(s.seeds), s.lr, _LARGEST_NORM, s.seeds)
        rule = s.declared
        self.score: Callable = rule.load(PACKAGE, rule.score)
        self.term: Callable[[Seen, object], Term] = rule.load(PACKAGE, rule.term)
        self.own = s.rule_settings
        self.examiner = Examiner(self.task, self.policy, s.seeds, s.compat == "reference")
        self.step = 0
        self.rows: list[Row] = []

    @property
    def weights(self) -> Tensor:
        """The policy's weights, [S, P]."""
        return self.learner.weights

    def run(self, advance: Callable[[], object] = lambda: None) -> list[Row]:
        """Train all steps, and evaluate once more; `advance` is called after each step.

        Raises:
            TrainingError: a loss or a gradient is not finite.
        """
        while self.step < self.settings.num_steps:
            self.take_step()
            advance()
        self._log(self._examine())
        return self.rows

    def take_step(self) -> None:
        """Sample a batch and update on it; evaluate before, if it is time."""
        s = self.settings
        due = self.step % s.eval_every == 0
        found = self._examine() if due else {}
        exact = self.exact_gradient() if due else None
        batch = self.sample()
        for epoch in range(s.inner_epochs):
            term, gradient = self.learner.update(
                lambda weights: self.loss(batch, weights), f"vpo, {s.method}, step {self.step}"
            )
            if due and epoch == 0:
                cosine = torch.cosine_similarity(-gradient.double(), exact, dim=1)
                found["cos_set_score"] = cosine
        if due:
            self._log({"loss": term.loss} | self._describe(batch) | dict(term.metrics) | found)
        self.step += 1

    @torch.no_grad()
    def sample(self) -> Rollout:
        """A batch of sets, with their scores and the credit of each slot."""
        s = self.settings
        prompts = self.task.draw(s.seeds, self.step, s.groups)
        shape = (s.groups, s.group_size, s.num_candidates, 1)
        uniform = draws.uniform(s.seeds, "action", (self.step,), shape)
        sampled = self.policy.sample(self.weights, prompts, uniform)
        vectors = self.task.rewards(prompts, sampled.actions)
        scores, credit = self.score(vectors, self.preferences(), self.own)
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
        """The rule's term of the batch under `weights`."""
        table = self.policy.table(weights, batch.inputs[VIEW], batch.actions)
        nothing = torch.zeros(())
        return self.term(Seen(batch, table, nothing, torch.ones(1)), self.own)

    def state(self) -> dict[str, object]:
        """What an interrupted run needs to go on as if it had not been; see `load_state`."""
        return {"learner": self.learner.state(), "step": self.step, "rows": list(self.rows)}

    def load_state(self, state: Mapping[str, object]) -> None:
        """Go on where `state` was taken, from a trainer of the same settings."""
        self.learner.load_state(state["learner"])
        self.step, self.rows = state["step"], list(state["rows"])

    def preferences(self) -> Tensor:
        """Weights [S, N, W, 2] ~ Dirichlet(1, 1) that the sets of a group share."""
        s = self.settings
        shape = (s.groups, s.rule.get("draws", 1))
        place = draws.uniform(s.seeds, "weight", (self.step,), shape)
        return torch.stack([place, 1.0 - place], -1)

    def exact_gradient(self) -> Tensor:
        """Gradient [S, P] of the expected set score over all prompts."""
        weights = self.weights.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(self.examiner.expected_set_score(weights).sum(), weights)
        return gradient.double()

    def _describe(self, batch: Rollout) -> dict[str, Tensor]:
        """What the log says of the batch that trained."""
        gold = (batch.extras["vectors"] @ GOLD).amax(-1)
        mixed = batch.rewards.amax(-1) > batch.rewards.amin(-1)
        return {
            "reward": batch.rewards.flatten(1).mean(1),
            "gold_set_reward": gold.flatten(1).mean(1),
            "mixed_group_rate": mixed.float().mean(1),
        }

    def _examine(self) -> dict[str, Tensor]:
        """What the policy can do, and what it has cost."""
        s = self.settings
        sets = self.step * s.batch_size
        spent = {
            "rollouts": sets,
            "answers": sets * s.num_candidates,
            "updates": self.learner.updates,
        }
        each = {name: torch.full((len(s.seeds),), count) for name, count in spent.items()}
        return self.examiner.examine(self.weights, self.step) | each

    def _log(self, columns: Mapping[str, Tensor]) -> None:
        s = self.settings
        head = {"step": self.step, "method": s.method, "task": s.task}
        self.rows += seed_rows(s.seeds, head, columns)
