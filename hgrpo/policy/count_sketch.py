"""Small random projections of long vectors, which keep inner products on average.

A count sketch adds each number of a vector, with a random sign, to one random place. It is linear.
The product of two sketches of size m has the expectation of the vectors' own product, and a
deviation of at most sqrt(2 / m) times their lengths. See Charikar, Chen and Farach-Colton 2002,
"Finding Frequent Items in Data Streams", https://doi.org/10.1007/3-540-45465-9_59.
"""

import torch
from torch import Tensor

from hgrpo.games.streams import generator


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
