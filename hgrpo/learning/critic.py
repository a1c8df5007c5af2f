"""The critic, which predicts the reward-to-go before every token, and advantages based on it.

The critic is a copy of the SFT policy with a value head instead of the language-model head. It
shares no weights with the policy. Its values are V = mean + deviation * (output of the head), with
the mean and standard deviation of the first batch's returns. All initial values equal this mean.
The loss is computed on the scale of the head's output, so the learning rate and the clip need not
be adapted to the scale of rewards. The loss is that of PPO's reference implementation (Huang
et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization",
https://iclr-blog-track.github.io/2022/03/25/ppo-implementation-details/).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.optim import Optimizer

from hgrpo.base_model.safetensors_file import check_checksum, write_tensors
from hgrpo.errors import UserError
from hgrpo.learning.batch import (
    SampledSequence,
    TrainingSequence,
    by_sequence,
    training_return,
)
from hgrpo.learning.gae import ESTIMATORS, Estimate
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.optimisers import descend
from hgrpo.learning.ranks import ALONE, Ranks
from hgrpo.learning.settings import CriticConfig, TrainingConfig
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_states
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast
from hgrpo.trajectories.trajectory import Trajectory

_HEAD, _SCALE, _BASE = "value_head.", "value_scale", "base"
# Lower bound of the standard deviation in whitening.
FLOOR = 1e-8
DIAGNOSTICS = ("critic_loss", "critic_grad_norm", "critic_clip_fraction", "explained_variance")


def value_loss(values: Tensor, before: Tensor, targets: Tensor, clip: float) -> Tensor:
    """PPO's clipped value loss of each token, [N], on the scale of the head's output.

    It is max((V - target)^2, (clipped V - target)^2) / 2, where V is clipped to within `clip` of
    `before`, the value before the batch's first step. If the clipped V is farther from the target
    than V, the gradient is 0.
    """
    clipped = before + (values - before).clamp(-clip, clip)
    return 0.5 * torch.maximum((values - targets).square(), (clipped - targets).square())


def explained_variance(values: np.ndarray, targets: np.ndarray) -> float | None:
    """1 - Var(target - V) / Var(target): 1 for a perfect critic, and 0 for a constant critic.

    The result is None if the targets do not vary.
    """
    spread = targets.var()
    return float(1.0 - (targets - values).var() / spread) if spread > 0 else None


def value_head(policy: Policy) -> nn.Linear:
    """A linear value head with all weights 0."""
    head = nn.Linear(policy.architecture.hidden_size, 1, device=policy.device)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


@dataclass
class Critic:
    """Predicts the value before each token. For `ranks`, see `Learner`.

    Attributes:
        body: the model that computes hidden states; its language-model head is unused.
        optimiser: optimiser of the trainable tensors of body and head.
        scale: float64 [2], mean and standard deviation of the first batch's returns, or NaN.
    """

    body: Policy
    head: nn.Linear
    optimiser: Optimizer
    config: CriticConfig
    microbatch_tokens: int
    autocast: torch.dtype | None
    ranks: Ranks = ALONE
    scale: Tensor = field(default_factory=lambda: torch.full((2,), math.nan, dtype=torch.float64))

    def calibrate(self, returns: np.ndarray) -> None:
        """Set the head's scale from the first batch's returns. Later calls have no effect.

        The standard deviation is 1 if all returns are equal.
        """
        if self.scale.isnan().any():
            self.scale = torch.tensor([float(returns.mean()), float(returns.std()) or 1.0]).double()

    def state(self) -> dict[str, object]:
        """The state that training passes from step to step."""
        return {"weights": self.weights(), "optimiser": self.optimiser.state_dict()}

    def load_state(self, state: Mapping[str, object]) -> None:
        self.load_weights(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])

    def weights(self) -> dict[str, Tensor]:
        """Copies of the trained tensors."""
        head = {_HEAD + name: tensor for name, tensor in self.head.state_dict().items()}
        head[_SCALE] = self.scale
        return self.body.trained_state() | {k: v.detach().clone() for k, v in head.items()}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        names = [name for name in weights if name.startswith(_HEAD)]
        self.head.load_state_dict({name.removeprefix(_HEAD): weights[name] for name in names})
        self.scale = weights[_SCALE].clone()
        others = {k: v for k, v in weights.items() if k not in (*names, _SCALE)}
        self.body.load_trained_state(others)

    @torch.no_grad()
    def values(self, sequences: Sequence[SampledSequence]) -> list[np.ndarray]:
        """The value before each sampled token, one float64 array [N] per sequence.

        Call `calibrate` first.

        Raises:
            TrainingError: a value is not finite.
        """
        mean, deviation = self.scale.tolist()
        rows = by_sequence(
            lambda chosen: mean + deviation * self._values(chosen).double(),
            sequences,
            self.microbatch_tokens,
            self.ranks,
            "the critic's value",
        )
        return [row.numpy() for row in rows]

    def update(
        self,
        sequences: Sequence[TrainingSequence],
        before: Sequence[np.ndarray],
        estimates: Sequence[Estimate],
        order: Sequence[int],
    ) -> dict[str, float | None]:
        """Take `epochs` passes over a batch, in `minibatches` steps each; return diagnostics.

        Args:
            before: the output of `values` for the sequences.
            order: indices of the trajectories to use, as in `Learner.update`.

        Raises:
            TrainingError: a gradient or weight is not finite.
        """
        if not order:
            return dict.fromkeys(DIAGNOSTICS)
        known = np.concatenate([before[i][estimates[i].learnt] for i in order])
        targets = np.concatenate([estimates[i].targets[estimates[i].learnt] for i in order])
        steps = []
        for _ in range(self.config.epochs):
            for part in np.array_split(order, min(len(order), self.config.minibatches)):
                chosen = [(sequences[i], before[i], estimates[i]) for i in part]
                steps.append(self._step(chosen))
        row = {name: sum(step[name] for step in steps) / len(steps) for name in steps[0]}
        return row | {"explained_variance": explained_variance(known, targets)}

    def _step(
        self, minibatch: Sequence[tuple[TrainingSequence, np.ndarray, Estimate]]
    ) -> dict[str, float]:
        tokens = sum(int(estimate.learnt.sum()) for _, _, estimate in minibatch)
        lengths = [len(s.token_ids) for s, _, _ in minibatch]
        sums = {"critic_loss": 0.0, "critic_clip_fraction": 0.0}
        for part in self.ranks.share(micro_batches(lengths, self.microbatch_tokens)):
            terms = self._backward([minibatch[i] for i in part], tokens)
            sums = {name: sums[name] + terms[name] for name in sums}
        parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        self.ranks.sum_gradients(parameters)
        parts = self.ranks.gather(sums)
        sums = {name: sum(theirs[name] for theirs in parts) for name in sums}
        norm = descend([self.optimiser], parameters, self.config.max_grad_norm, "critic: ")
        return sums | {"critic_grad_norm": norm}

    def _backward(
        self, chosen: Sequence[tuple[TrainingSequence, np.ndarray, Estimate]], tokens: int
    ) -> dict[str, float]:
        """Add a micro-batch's gradient; the minibatch has `tokens` tokens with a target."""
        learnt = torch.from_numpy(np.concatenate([e.learnt for _, _, e in chosen]))
        values = self._values([s for s, _, _ in chosen])[learnt]
        before = self._in_units([b for _, b, _ in chosen])[learnt]
        targets = self._in_units([e.targets for _, _, e in chosen])[learnt]
        loss = value_loss(values, before, targets, self.config.clip).sum() / tokens
        loss.backward()
        moved = (values.detach() - before).abs() > self.config.clip
        return {
            "critic_loss": float(loss.detach()),
            "critic_clip_fraction": float(moved.float().sum()) / tokens,
        }

    def _in_units(self, rows: Sequence[np.ndarray]) -> Tensor:
        """Convert values of several sequences to one float32 tensor on the head's scale."""
        mean, deviation = self.scale.tolist()
        return torch.from_numpy((np.concatenate(rows) - mean) / deviation).float()

    def _values(self, sequences: Sequence[SampledSequence]) -> Tensor:
        """The head's output before each sampled token, float32 [N]."""
        spans = [s.spans for s in sequences]
        batch = make_batch([s.token_ids for s in sequences], spans, self.body.device)
        with cast(self.body.device, self.autocast):
            states = sampled_states(self.body.causal_lm, batch)
        return self.head(states).squeeze(1).cpu()


def estimates(
    critic: Critic,
    trajectories: Sequence[Trajectory],
    values: Sequence[np.ndarray],
    method: MethodConfig,
    training: TrainingConfig,
) -> list[Estimate]:
    """Estimate advantages and targets; `values` are the critic's values, [N] per trajectory.

    The penalty for inadmissible turns is subtracted from the last turn's reward. With `truncation:
    bootstrap`, the critic also predicts the value after the last turn of each truncated trajectory.
    The input for this value is the whole trajectory, including the environment's last answer, up to
    the critic's maximum number of positions.
    """
    bootstraps = training.gae.truncation == "bootstrap"
    cut = [k for k, t in enumerate(trajectories) if bootstraps and t.truncated]
    finals = np.zeros(len(trajectories))
    longest = critic.body.architecture.max_position_embeddings
    finals[cut] = [row[0] for row in critic.values([_after(trajectories[k], longest) for k in cut])]
    made = []
    for trajectory, row, final in zip(trajectories, values, finals, strict=True):
        rewards = np.array([turn.env_reward for turn in trajectory.turns], dtype=np.float64)
        penalised = training_return(trajectory, training.invalid_action_penalty)
        rewards[-1] += penalised - trajectory.env_return
        ends = np.zeros(len(row), dtype=bool)
        ends[np.cumsum([turn.span[1] - turn.span[0] for turn in trajectory.turns]) - 1] = True
        made.append(ESTIMATORS[method.advantage](rewards, row, ends, training.gae, final))
    return made


def _after(trajectory: Trajectory, longest: int) -> SampledSequence:
    state = [*trajectory.token_ids, *trajectory.unread][: longest - 1]
    # Append an arbitrary token. The value before a token does not depend on the token itself.
    return SampledSequence([*state, 0], [(len(state), len(state) + 1)], name=trajectory.name)


def store_advantages(
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    estimates: Sequence[Estimate],
    trained: Sequence[bool],
) -> dict[str, float]:
    """Whiten the advantages of tokens. Store them in `sequences`, and each turn's mean in the turn.

    The mean and the standard deviation for whitening are computed over the tokens of the `trained`
    trajectories. A turn's credit is the mean of its tokens' advantages before whitening.

    Returns:
        The mean and the standard deviation, as log entries.
    """
    used = [e.advantages for e, part in zip(estimates, trained, strict=True) if part]
    tokens = np.concatenate(used) if used else np.zeros(1)
    mean, deviation = float(tokens.mean()), float(tokens.std())
    for trajectory, sequence, made in zip(trajectories, sequences, estimates, strict=True):
        white = (made.advantages - mean) / max(deviation, FLOOR)
        sequence.advantages = torch.from_numpy(white).float()
        cuts = np.cumsum([turn.span[1] - turn.span[0] for turn in trajectory.turns])[:-1]
        raw, whitened = np.split(made.advantages, cuts), np.split(white, cuts)
        for turn, credit, advantage in zip(trajectory.turns, raw, whitened, strict=True):
            turn.credit, turn.advantage = float(credit.mean()), float(advantage.mean())
    return {"advantage_mean": mean, "advantage_deviation": deviation}


def save_critic(critic: Critic | None, path: Path, base: str) -> None:
    """Write the critic's trained tensors; `base` is the digest of the base model.

    An arm without a critic writes a file without tensors, because all arms share a Snakemake rule,
    which requires the file.
    """
    write_tensors(critic.weights() if critic else {}, path, {_BASE: base})


def check_critic(path: Path, base: str) -> None:
    """Check a file written by `save_critic` before loading it.

    Raises:
        UserError: the file is missing, is damaged, belongs to another base model, or has no critic.
    """
    if not path.is_file():
        raise UserError(f"{path}: the file is missing")
    check_checksum(path)
    with safe_open(path, "pt") as file:
        other = (file.metadata() or {}).get(_BASE)
        if other != base:
            raise UserError(f"{path}: the critic belongs to base model {other}, not {base}")
        if not file.keys():
            raise UserError(f"{path}: contains no critic, because the arm had `advantage: group`")
