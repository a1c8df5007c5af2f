"""The digits bandit: classify images of ten digits.

By default, the images are scikit-learn's 1,797 digits of 8 by 8 pixels, and every fifth image is a
test image. Alternatively, the images are read from the user's MNIST file.
"""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hgrpo.errors import UserError, one_line
from hgrpo.formulas.batch import Questions
from hgrpo.sandbox import draws
from hgrpo.sandbox.nets.layout import MLP
from hgrpo.sandbox.policies import BanditPolicy, Policy, taken
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import Bandit

_CLASSES = 10
_TEST_EVERY = 5
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
# Exceptions that are raised if the file is damaged, truncated or of the wrong kind.
_DAMAGED = (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Digits(Bandit):
    """Images with F pixels in [0, 1], float [n, F], and labels, int64 [n]."""

    pictures: Tensor
    digits: Tensor
    test_pictures: Tensor
    test_digits: Tensor
    hidden: int

    actions = _CLASSES
    binary = True

    @classmethod
    def load(cls, settings: RlSettings) -> "Digits":
        """Load the images.

        Raises:
            UserError: the images are missing, or the file is not MNIST.
        """
        arrays = _read(Path(settings.data)) if settings.data else _scikit()
        pictures, digits, test_pictures, test_digits = arrays
        for name, x, y in (
            ("train", pictures, digits),
            ("test", test_pictures, test_digits),
        ):
            fits = x.ndim > 1 and y.ndim == 1 and len(x) == len(y) > 0
            if not fits or y.min() < 0 or y.max() >= _CLASSES:
                raise UserError(
                    f"{settings.data}: {name}: the images have shape {x.shape}, the labels have "
                    f"shape {y.shape}; expected images of shape (n, ...) and n labels from 0 to 9"
                )
        rows = [torch.as_tensor(x.reshape(len(x), -1), dtype=torch.float32) for x in arrays[::2]]
        labels = [torch.as_tensor(y.astype(np.int64)) for y in arrays[1::2]]
        return cls(rows[0], labels[0], rows[1], labels[1], settings.hidden)

    def policy(self) -> Policy:
        return BanditPolicy(MLP(self.pictures.shape[1], self.hidden, _CLASSES))

    def draw(self, seeds: Sequence[int], step: object, count: int) -> Questions:
        chosen = draws.integers(seeds, "data", (step,), (count,), len(self.digits))
        return Questions(self.pictures[chosen], self.digits[chosen].unsqueeze(-1))

    def examination(self) -> tuple[Questions, bool]:
        return Questions(self.test_pictures.unsqueeze(0), self.test_digits[None, :, None]), True

    def stated(self, policy: Policy, weights: Tensor, questions: Questions) -> Tensor:
        """The probability of the right digit."""
        answer = questions.labels[:, :, None, None]
        with torch.no_grad():
            table = policy.table(weights, questions.inputs, answer)
            return taken(table, answer).exp()[:, :, 0, 0, 0]


def _scikit() -> tuple[np.ndarray, ...]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UserError(
            "task mnist: install scikit-learn (extra `digits`), or set --data to an .npz file "
            "with x_train, y_train, x_test, y_test"
        ) from None
    bunch = load_digits()
    test = np.arange(len(bunch.target)) % _TEST_EVERY == 0
    x, y = bunch.data / 16.0, bunch.target
    return x[~test], y[~test], x[test], y[test]


def _read(path: Path) -> tuple[np.ndarray, ...]:
    try:
        if path.is_file() and not zipfile.is_zipfile(path):
            raise ValueError("the file is not an .npz file")
        with np.load(path, allow_pickle=False) as file:
            x, y, test_x, test_y = (file[name] for name in _ARRAYS)
        return x / 255.0, y, test_x / 255.0, test_y
    except FileNotFoundError:
        raise UserError(f"--data: file not found: {path}") from None
    except _DAMAGED as error:
        raise UserError(f"--data: {path}: expected MNIST's format ({one_line(error)})") from None
