"""Random projections of the gradients of turns' log-probabilities.

The policy gradient is a sum over turns of the advantage times the gradient of the reply's
log-probability. Given one sketch per turn, inner products of any two updates on the same turns can
be computed without the model.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hgrpo.policy.count_sketch import CountSketch
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy


class ScoreSketcher:
    """Sketches the gradients of the trained parameters; uses five bytes per parameter.

    Args:
        size: number of entries of a sketch. Equal sizes and equal models give equal projections.
        temperature: sampling temperature of the replies.
    """

    def __init__(self, policy: Policy, size: int, temperature: float):
        self._policy, self._temperature = policy, temperature
        self._parameters = [parameter for _, parameter in policy.trainable]
        count = sum(parameter.numel() for parameter in self._parameters)
        self._project = CountSketch(count, size, policy.device, "score-sketch")

    def of_turns(self, token_ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """Sketch of each turn's gradient, float32 [turns, size].

        The gradient is taken of the summed log-probability of the turn's sampled tokens.

        Args:
            token_ids: a trajectory's tokens.
            spans: the sampled token range [start, end) of each turn.
        """
        batch = make_batch([token_ids], [spans], self._policy.device)
        logprobs, _ = sampled_logprobs(self._policy.causal_lm, batch, self._temperature)
        parts = logprobs.split([end - start for start, end in spans])
        sketches = [
            self._sketch(part.sum(), last=index == len(parts) - 1)
            for index, part in enumerate(parts)
        ]
        return np.array(sketches, dtype=np.float32).reshape(len(spans), self._project.size)

    def _sketch(self, score: Tensor, last: bool) -> np.ndarray:
        gradients = torch.autograd.grad(
            score, self._parameters, retain_graph=not last, materialize_grads=True
        )
        flat = torch.cat([gradient.reshape(-1).float() for gradient in gradients])
        return self._project(flat).cpu().numpy()
