"""The TurnRD credit assigner, which embeds turns and computes credit with a fitted model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.counterfactual import CounterfactualCredit
from hgrpo.credit.to_go import credit_to_go
from hgrpo.credit.turnrd.diagnostics import alpha_diagnostics
from hgrpo.credit.turnrd.model import TurnBatch, load_model, pad
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.policy.head import decode
from hgrpo.policy.hidden import read_hidden
from hgrpo.policy.policy import Policy
from hgrpo.trajectories.trajectory import Trajectory


class TurnRDCredit(CreditAssigner):
    """Computes credit with the model in `Context.fitted`; without a model, turns get equal shares.

    If `counterfactual` is set, continuations are also played for every group. The resulting
    counterfactual credit is a target of the next fit.
    """

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        play = settings.counterfactual
        self._targets = None if play is None else CounterfactualCredit(play, context)
        self._model = load_model(Path(context.fitted), settings) if context.fitted else None
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return the credit of every turn, K float64 arrays [T_k].

        For later fits, counterfactual targets and embeddings that the engine did not compute are
        stored in the turns.
        """
        played = [t for t in group.trajectories if t.turns]
        self._embed(played)
        if self._targets is not None:
            self._targets.teach(group)
        return credit_to_go(self._read_out(group, played), self.settings.to_go)

    def _read_out(self, group: Group, played: Sequence) -> list[np.ndarray]:
        if self._model is None:
            return [uniform(len(t.turns), t.env_return) for t in group.trajectories]
        if not played:
            return [np.zeros(0) for _ in group.trajectories]
        with torch.inference_mode():
            output = self._model.eval()(self._batch(played))
        credits = []
        for row, trajectory in enumerate(played):
            length = len(trajectory.turns)
            alpha = output.alpha[row, :length].double().numpy()
            values = None if output.values is None else output.values[row, :length].double().numpy()
            self._seen.append((alpha, np.array([turn.progress for turn in trajectory.turns])))
            credits.append(read_out(self.settings, alpha, values, trajectory.env_return))
        rows = iter(credits)
        return [next(rows) if t.turns else np.zeros(0) for t in group.trajectories]

    def report(self) -> dict[str, float]:
        """Return log entries about alpha, about the model's weights and about continuations."""
        seen, self._seen = self._seen, []
        numbers = alpha_diagnostics(seen) if seen else {}
        if self._model is not None:
            numbers |= self._model.measures()
        if self._targets is not None:
            numbers |= self._targets.report()
        return numbers

    def _embed(self, trajectories: Sequence) -> None:
        missing = [t for t in trajectories if t.turns[0].embedding is None]
        if missing:
            rows = turn_embeddings(self.context.policy, missing)
            for trajectory, embeddings in zip(missing, rows, strict=True):
                for turn, embedding in zip(trajectory.turns, embeddings, strict=True):
                    turn.embedding = embedding
        if self.settings.model.film and any(t.goal_embedding is None for t in trajectories):
            # All trajectories of a group have the same goal, because they have the same task.
            goal = trajectories[0].goal
            shared = goal_embedding(self.context.policy, self.context.conversation, goal)
            for trajectory in trajectories:
                trajectory.goal_embedding = shared

    def _batch(self, trajectories: Sequence) -> TurnBatch:
        # Stored embeddings are float16. Round here too, so that stored rollouts get equal credit.
        turns = [np.stack([turn.embedding for turn in t.turns]).astype("f2") for t in trajectories]
        film = self.settings.model.film
        return pad(turns, [np.float16(t.goal_embedding) for t in trajectories] if film else None)


def read_out(
    settings: Settings, alpha: np.ndarray, values: np.ndarray | None, env_return: float
) -> np.ndarray:
    """Return the credit [T] of a trajectory with return R, given alpha [T] and values V [T].

    - `alpha_return`: alpha_t R.
    - `projected_value`: V_t, clipped to +-value_clip and then shifted so that the sum is R.
    - `value_baseline`: alpha_t R - V_t.
    """
    match settings.readout:
        case "alpha_return":
            return alpha * env_return
        case "projected_value":
            clipped = np.clip(values, -settings.value_clip, settings.value_clip)
            return clipped - (clipped.sum() - env_return) / len(values)
        case _:
            return alpha * env_return - values


def uniform(length: int, env_return: float) -> np.ndarray:
    """Return the credit before the first fit: an equal share R / T for each of the T turns."""
    return np.full(length, env_return / max(1, length))


def turn_ranges(
    spans: Sequence[tuple[int, int]], token_ids: Sequence[int], end_id: int
) -> list[tuple[int, int]]:
    """Return the range [start, end) of tokens whose hidden states are averaged, for each turn.

    `token_ids` is the whole conversation, and `spans` are the ranges of replies in it. `end_id` is
    the closing token of a reply.
    """
    ends = [end - (token_ids[end - 1] == end_id) for _, end in spans]
    return list(zip([0, *ends], ends, strict=False))


def turn_embeddings(policy: Policy, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """Compute embeddings of each trajectory's turns, float32 [T_k, D], by a forward pass."""
    end_id = policy.conversation.end_id

    def means(index: int, hidden: torch.Tensor) -> np.ndarray:
        played = trajectories[index]
        ranges = turn_ranges(played.spans, played.token_ids, end_id)
        rows = [hidden[start:end].mean(0).numpy() for start, end in ranges]
        return np.stack(rows) if rows else np.zeros((0, hidden.shape[-1]), np.float32)

    return read_hidden(policy, [trajectory.token_ids for trajectory in trajectories], means)


@torch.inference_mode()
def goal_embedding(policy: Policy, conversation: Conversation, goal: str) -> np.ndarray:
    """Return the mean hidden state of a conversation that contains only the goal, float32 [D]."""
    tokens = torch.tensor([conversation.opening(goal)], device=policy.device)
    hidden, _ = decode(policy.causal_lm, tokens)
    return hidden[0].float().mean(0).cpu().numpy()
