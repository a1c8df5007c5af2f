"""Format numbers, arms and lists as text."""

from collections.abc import Iterable

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.report.arms import Arms

MINUS, SPACE, DASH = "\u2212", "\u00a0", "\u2013"


def percent(share: float, digits: int = 1) -> str:
    """Format a fraction as percent, with a non-breaking space."""
    return DASH if pd.isna(share) else f"{100 * share:.{digits}f}{SPACE}%"


def in_points(fraction: float, digits: int = 1) -> float:
    """Convert a fraction to rounded percentage points."""
    # The inner `round` removes floating-point noise of sums, so that equal numbers give equal text.
    # `float` is required, because NumPy rounds 18.15 to 18.2, but Python rounds it to 18.1.
    return round(round(100 * float(fraction), 6), digits)


def points(difference: float, digits: int = 1) -> str:
    """Format a difference of fractions in percentage points, always signed."""
    if pd.isna(difference):
        return DASH
    value = in_points(difference, digits)
    sign = "+" if value > 0 else MINUS if value < 0 else "±"
    return f"{sign}{abs(value):.{digits}f}"


def p_value(value: float) -> str:
    """Format a p-value with three decimals, or as `< 0.001`."""
    if pd.isna(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """Format seconds in minutes, or in hours and minutes: `9 min`, `2 h 5 min`."""
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f"{hours}{SPACE}h {minutes}{SPACE}min" if hours else f"{minutes}{SPACE}min"


def temperature_name(temperature: float) -> str:
    """Format a temperature: `greedy` or `T = 0.5`."""
    return "greedy" if temperature == 0 else f"T{SPACE}={SPACE}{temperature:g}"


def opponent(arms: Arms, name: str, temperature: float) -> str:
    """The label of a baseline, plus the temperature for an untrained arm: `SFT only, T = 0.5`."""
    played = "" if arms[name].trained else f", {temperature_name(temperature)}"
    return arms.label(name) + played


def listing(names: list[str], last: str = "and") -> str:
    """Join names as in a sentence: `a`, `a and b`, or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def if_several(seeds: Iterable[int], text: str) -> str:
    """The text if there are several seeds, else ""."""
    return text if len(set(seeds)) > 1 else ""


def ends(lower: str, upper: str, form: str = "{}") -> str:
    """Format an interval with the template `form`; "" if its ends are dashes (one seed)."""
    return "" if DASH in (lower, upper) else form.format(f"{lower} to {upper}")


def with_interval(difference: float, lower: float, upper: float) -> str:
    """Format a difference in points, with its interval, if any, in parentheses."""
    return points(difference) + ends(points(lower), points(upper), " ({})")


def pooled_twin(comparison: Comparison, arms: Arms) -> str:
    """State that the A/A twin is pooled with the reference; "" if it is not."""
    table = comparison.against_reference
    if table.empty or not (table["baseline_runs"] > table["n_seeds"]).any():
        return ""
    return (
        f" Runs of the A/A twin are pooled with those of {arms.label(arms.reference)}: differences "
        "of the other arms are from the mean of both, not from the reference's mean in this table."
    )


def count_word(number: int) -> str:
    """Spell out a number up to ten; format larger numbers in digits."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def capital(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]
