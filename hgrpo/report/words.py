"""Turns numbers, arms and lists into text."""

from collections.abc import Iterable

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.report.arms import Arms

MINUS, SPACE, DASH = "\u2212", "\u00a0", "\u2013"


def percent(share: float, digits: int = 1) -> str:
    """A fraction as percent, with a non-breaking space."""
    return DASH if pd.isna(share) else f"{100 * share:.{digits}f}{SPACE}%"


def in_points(fraction: float, digits: int = 1) -> float:
    """A fraction in percentage points, rounded."""
    # Equal numbers must round alike: NumPy rounds 18.15 up and Python down, and sums leave noise.
    return round(round(100 * float(fraction), 6), digits)


def points(difference: float, digits: int = 1) -> str:
    """A difference of fractions in percentage points, always signed."""
    if pd.isna(difference):
        return DASH
    value = in_points(difference, digits)
    sign = "+" if value > 0 else MINUS if value < 0 else "±"
    return f"{sign}{abs(value):.{digits}f}"


def p_value(value: float) -> str:
    """A p-value with three decimals, or `< 0.001`."""
    if pd.isna(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """A time in minutes, or in hours and minutes: `9 min`, `2 h 5 min`."""
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f"{hours}{SPACE}h {minutes}{SPACE}min" if hours else f"{minutes}{SPACE}min"


def temperature_name(temperature: float) -> str:
    """A temperature as text: `greedy` or `T = 0.5`."""
    return "greedy" if temperature == 0 else f"T{SPACE}={SPACE}{temperature:g}"


def opponent(arms: Arms, name: str, temperature: float) -> str:
    """The label of a comparison's baseline: `flat GRPO`, or `SFT only, T = 0.5`."""
    played = "" if arms[name].trained else f", {temperature_name(temperature)}"
    return arms.label(name) + played


def listing(names: list[str], last: str = "and") -> str:
    """Join names as in a sentence: `a`, `a and b`, or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def if_several(seeds: Iterable[int], text: str) -> str:
    """The text if there are several seeds, and "" if there is one."""
    return text if len(set(seeds)) > 1 else ""


def ends(lower: str, upper: str, form: str = "{}") -> str:
    """An interval as text, put into `form`; "" if its ends are dashes, as with one seed."""
    return "" if DASH in (lower, upper) else form.format(f"{lower} to {upper}")


def with_interval(difference: float, lower: float, upper: float) -> str:
    """A difference in points with its interval in brackets, if it has one."""
    return points(difference) + ends(points(lower), points(upper), " ({})")


def pooled_twin(comparison: Comparison, arms: Arms) -> str:
    """A sentence, after a space, if runs of the A/A twin count as runs of the reference; or ""."""
    table = comparison.against_reference
    if table.empty or not (table["baseline_runs"] > table["n_seeds"]).any():
        return ""
    return (
        f" Runs of the A/A twin count as runs of {arms.label(arms.reference)}: the other arms' "
        "differences are from the mean of both, and no plain subtraction of two means."
    )


def count_word(number: int) -> str:
    """A number up to ten as a word, a larger one in digits."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def capital(text: str) -> str:
    """The text with a capital letter first."""
    return text[:1].upper() + text[1:]
