"""Random projections of the gradients of turns' log-probabilities.

The policy gradient is a sum over turns of the advantage times the gradient of the reply's
log-probability. Given one sketch per turn, inner products of any two updates on the same turns can
be estimated without the model.

A count sketch is a linear projection. It adds each entry of a vector, with a random sign, to one
random entry of the sketch. The inner product of two sketches of size m is an unbiased estimate of
the vectors' inner product, with a standard deviation of at most sqrt(2 / m) times the product of
their norms. See Charikar, Chen and Farach-Colton 2002, "Finding Frequent Items in Data Streams",
https://doi.org/10.1007/3-540-45465-9_59.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hgrpo.games.streams import generator
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy


class CountSketch:
    """Projects vectors of a fixed length; uses five bytes of memory per vector entry.

    Args:
        length: length of the vectors.
        size: number of entries of a sketch. Equal lengths, sizes and names give equal projections.
        device: device of the vectors.
        name: name of the random stream that selects a sketch entry and a sign per vector entry.
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

        The gradient is that of the summed log-probability of the turn's sampled tokens.

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
