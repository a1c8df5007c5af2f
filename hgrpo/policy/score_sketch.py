"""Small random projections of the gradients of turns' log-probabilities.

The gradient of an update is a sum over turns: each turn's advantage times the gradient of the
log-probability of its reply. With one sketch per turn, the inner products of any two updates on the
same turns follow without the model.

A count sketch adds each number of a vector, with a random sign, to one random place. It is linear.
The product of two sketches of size m has the expectation of the vectors' own product, and a
deviation of at most sqrt(2 / m) times their lengths. See Charikar, Chen and Farach-Colton 2002,
"Finding Frequent Items in Data Streams", https://doi.org/10.1007/3-540-45465-9_59.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hgrpo.games.streams import generator
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy


class CountSketch:
    """Projects vectors of one length; it keeps five bytes for each of their numbers.

    Args:
        length: of the vectors.
        size: numbers in a sketch. Equal lengths, sizes and names give equal projections.
        device: where the vectors are.
        name: of the random stream that places and signs are drawn from.
    """

    def __init__(self, length: int, size: int, device: torch.device | str, name: str):
        self.size = size
        rng = generator(name, size)
        places = rng.integers(size, size=length, dtype="int32")
        signs = 2 * rng.integers(2, size=length, dtype="int8") - 1
        self._places = torch.from_numpy(places).to(device)
        self._signs = torch.from_numpy(signs).to(device)

    def __call__(self, vector: Tensor) -> Tensor:
        """The sketch of a vector, float32 [size], on its device."""
        sketch = torch.zeros(self.size, device=vector.device)
        return sketch.index_add_(0, self._places, vector * self._signs)


class ScoreSketcher:
    """Sketches the trained parameters' gradients; it keeps five bytes for each parameter.

    Args:
        size: numbers in a sketch. Equal sizes and equal models give equal projections.
        temperature: at which the replies were sampled.
    """

    def __init__(self, policy: Policy, size: int, temperature: float):
        self._policy, self._temperature = policy, temperature
        self._parameters = [parameter for _, parameter in policy.trainable]
        count = sum(parameter.numel() for parameter in self._parameters)
        self._project = CountSketch(count, size, policy.device, "score-sketch")

    def of_turns(self, token_ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """Sketch of each turn's gradient, float32 [turns, size].

        The gradient is that of the sum of the log-probabilities of the turn's sampled tokens.

        Args:
            token_ids: a trajectory's tokens.
            spans: the sampled [start, end) part of each turn.
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
