"""The root of an estimated square, which may be below 0."""

from typing import TypeVar

import numpy as np
import pandas as pd

Numbers = TypeVar("Numbers", float, np.ndarray, pd.Series)


def signed_root(square: Numbers) -> Numbers:
    """The root of |square| with the sign of `square`.

    A squared norm without what noise adds is below 0 where the noise was large by chance. Setting
    such norms to 0 would make means too large; with their sign they stay visible.
    """
    return np.sign(square) * np.sqrt(np.abs(square))
