"""A variant of an experiment: the phases it trains, and what its rows say of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hgrpo.errors import UserError
from hgrpo.sandbox.opd.settings import Phase

# By the word in a variant's name, the losses that separate a leak from missing support.
CONTROLS = {
    "renormalised": "OPDTopKRenormalised",
    "tail": "OPDTopKTail",
    "forward": "OPDTopKForwardKL",
}


@dataclass(frozen=True)
class Variant:
    """`columns` go into each of its rows; `switch` is the step at which truncation begins."""

    name: str
    phases: tuple[Phase, ...]
    columns: Mapping[str, Any] = field(default_factory=dict)
    switch: int | None = None


def truncated(k: int, support: str, controls: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The losses over one top-k set: a word ("" for the original's), the loss, its settings."""
    own = {"k": k, "support": support}
    yield "", "OPDTopKReverseKL", own
    for word, method in CONTROLS.items() if controls else ():
        # Given one token, its probability is always 1.
        if word != "renormalised" or k > 1:
            yield word, method, own


def after_warmup(before: str, warmup: int, method: str, own: dict, label: str) -> tuple[Phase, ...]:
    """`warmup` steps of full-vocabulary reverse KL, logged as `before`, then the given loss."""
    if not warmup:
        return (Phase(method=method, rule=own, label=label),)
    return (Phase(label=before), Phase(method=method, rule=own, label=label, start=warmup))


def check_warmups(warmups: Sequence[int], num_steps: int) -> None:
    """Refuse a warm-up after which nothing is left to train.

    Raises:
        UserError: a warm-up is not shorter than the run.
    """
    if max(warmups) >= num_steps:
        raise UserError(f"warmup_steps: {max(warmups)} must be below num_steps, {num_steps}")
