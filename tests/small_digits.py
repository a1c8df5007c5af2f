"""A file of pictures like MNIST's, for tests."""

from pathlib import Path

import numpy as np


def write_digits(path: Path) -> Path:
    """An .npz like MNIST's, with ten patterns under noise."""
    numbers = np.random.default_rng(0)
    patterns, digits = numbers.normal(size=(10, 64)), numbers.integers(0, 10, 500)
    pictures = patterns[digits] + 0.3 * numbers.normal(size=(500, 64))
    pixels = np.interp(pictures, (pictures.min(), pictures.max()), (0, 255)).astype(np.uint8)
    arrays = {"x_train": pixels[:400], "y_train": digits[:400]}
    np.savez(path, **arrays, x_test=pixels[400:], y_test=digits[400:])
    return path
