"""Random projections of long vectors that preserve inner products in expectation.

A count sketch is linear: it adds each entry of a vector, with a random sign, to one random bucket.
The inner product of two sketches of size m is an unbiased estimate of the vectors' inner product,
with a standard deviation of at most sqrt(2 / m) times the product of their norms. See Charikar,
Chen and Farach-Colton 2002, "Finding Frequent Items in Data Streams",
https://doi.org/10.1007/3-540-45465-9_59.
"""

import torch
from torch import Tensor

from hgrpo.games.streams import generator


class CountSketch:
    """Projects vectors of a fixed length; uses five bytes of memory per entry.

    Args:
        length: number of entries of a vector.
        size: number of buckets. Equal lengths, sizes and names give equal projections.
        device: device of the vectors.
        name: name of the random stream that draws buckets and signs.
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
