"""The experiments as data: flags, defaults, variants and figure of each."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.formulas.topk import Support
from hgrpo.sandbox.opd.settings import Counts, OpdSettings, Phase, Steps, Supports

FULL = "full_vocab_rkl"
# Where the log gives the step of a switch, this stands for a run without one.
_NEVER = -1
# By the word in a variant's name, the losses that separate a leak from missing support.
CONTROLS = {
    "renormalised": "OPDTopKRenormalised",
    "tail": "OPDTopKTail",
    "forward": "OPDTopKForwardKL",
}


@dataclass(frozen=True)
class Variant:
    """The phases that a run trains.

    `columns` go into each of its rows; `switch` is the step at which truncation begins.
    """

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


class _Controlled(Strict):
    """What every experiment with top-k sets can add."""

    controls: bool = Field(
        False,
        description="also train the renormalised, tail and forward losses, which tell a leak of "
        "probability from missing support",
    )


class Stability(_Controlled):
    """Flags of topk_stability."""

    top_ks: Counts = Field((1, 2, 4), description="sizes of the top-k set")
    clip_epsilon: float = Field(0.2, gt=0, description="sampled_pg: clip of the ratio")


class ColdStart(_Controlled):
    """Flags of topk_cold_start."""

    top_ks: Counts = Field((1, 2, 4), description="sizes of the top-k set")
    warmup_steps: int = Field(100, ge=0, description="steps with the full vocabulary first")


class WarmupSweep(_Controlled):
    """Flags of topk_warmup_sweep."""

    top_ks: Counts = Field((4, 8), description="sizes of the top-k set")
    warmup_steps: Steps = Field(
        (0, 50, 100, 150, 200, 250), description="steps with the full vocabulary first"
    )


class SoftTeacher(_Controlled):
    """Flags of soft_teacher_topk."""

    top_ks: Counts = Field((4,), description="sizes of the top-k set")
    supports: Supports = Field(get_args(Support), description="whose top-k sets")
    warmup_steps: Steps = Field(
        (0, 100, 200, 250), description="steps with the full vocabulary first"
    )


class Comparison(Strict):
    """Flags of compare."""

    clip_epsilon: float = Field(0.2, gt=0, description="OPDPG: clip of the ratio")


@dataclass(frozen=True)
class Experiment:
    """`defaults` are those of a run's settings; `fixed` names settings without a flag.

    `variants` takes the experiment's settings and those of a run. `combined` and `single` name
    its files, without suffix. `panels` are columns that the figure draws over steps; without any,
    the figure draws the last test error over the warm-up, a line for each value of `lines`.
    """

    help: str
    own: type[Strict]
    variants: Callable[[Any, OpdSettings], Iterator[Variant]]
    defaults: Mapping[str, Any]
    fixed: tuple[str, ...] = ()
    combined: str = "{name}"
    single: str = "{name}_{variant}"
    panels: Mapping[str, str] | None = None
    lines: tuple[str, ...] = ()


def _stability(own: Stability, run: OpdSettings) -> Iterator[Variant]:
    yield Variant(FULL, (Phase(),), {"top_k": 0})
    for k in own.top_ks:
        for word, method, rule in truncated(k, "student", own.controls):
            name = f"topk_{word or 'rkl'}_k{k}"
            yield Variant(name, (Phase(method=method, rule=rule),), {"top_k": k})
    clip = {"clip": own.clip_epsilon}
    yield Variant("sampled_pg", (Phase(method="OPDPG", rule=clip),), {"top_k": 0})


def _cold_start(own: ColdStart, run: OpdSettings) -> Iterator[Variant]:
    check_warmups([own.warmup_steps], run.num_steps)
    yield Variant(FULL, (Phase(label=FULL),), {"top_k": 0})
    for heat, warmup in (("cold", 0), ("warm", own.warmup_steps)):
        for k in own.top_ks:
            for word, method, rule in truncated(k, "student", own.controls):
                name = "_".join(filter(None, (heat, "topk", word, f"k{k}")))
                phases = after_warmup("warmup_full_vocab", warmup, method, rule, name)
                yield Variant(name, phases, {"top_k": k})


@dataclass(frozen=True)
class _Truncated:
    """A loss over a top-k set after a warm-up; `word` is that of `truncated`."""

    k: int
    support: str
    word: str
    method: str
    rule: Mapping[str, Any]
    warmup: int

    def variant(self, name: str, label: str, columns: Mapping[str, Any]) -> Variant:
        """The variant `name`, whose last phase the log calls `label`."""
        phases = after_warmup(FULL, self.warmup, self.method, dict(self.rule), label)
        own = {"top_k": self.k, "warmup_steps": self.warmup, "objective": self.word or "truncated"}
        return Variant(f"{name}_k{self.k}_warm{self.warmup}", phases, own | columns, self.warmup)


def _swept(own: WarmupSweep | SoftTeacher, supports: Sequence[str]) -> Iterator[_Truncated]:
    """All combinations of top-k sets, losses and warm-ups."""
    for k, support in itertools.product(own.top_ks, supports):
        for word, method, rule in truncated(k, support, own.controls):
            for warmup in own.warmup_steps:
                yield _Truncated(k, support, word, method, rule, warmup)


_NO_SET = {"top_k": 0, "warmup_steps": _NEVER, "objective": "full_vocab"}


def _warmup_sweep(own: WarmupSweep, run: OpdSettings) -> Iterator[Variant]:
    check_warmups(own.warmup_steps, run.num_steps)
    yield Variant(FULL, (Phase(label=FULL),), _NO_SET, _NEVER)
    for each in _swept(own, ("student",)):
        name = "_".join(filter(None, ("topk", each.word)))
        yield each.variant(name, f"topk_{each.word or 'rkl'}", {})


def _soft_teacher(own: SoftTeacher, run: OpdSettings) -> Iterator[Variant]:
    check_warmups(own.warmup_steps, run.num_steps)
    teacher = {key: getattr(run, key) for key in ("teacher_temperature", "special_token_weight")}
    full = _NO_SET | {"support": "full_vocab"} | teacher
    yield Variant(FULL, (Phase(label=FULL),), full, _NEVER)
    for each in _swept(own, own.supports):
        name = "_".join(filter(None, ("topk", each.word, each.support)))
        yield each.variant(name, name, {"support": each.support} | teacher)


def _comparison(own: Comparison, run: OpdSettings) -> Iterator[Variant]:
    yield Variant("OPDReverseKL", (Phase(),))
    yield Variant("OPDPG", (Phase(method="OPDPG", rule={"clip": own.clip_epsilon}),))


_ERROR, _AGREES = {"test_error": "test error"}, {"diag_top1_agreement": "top-1 agreement"}
_DIVERGES = {"diag_reverse_kl": "reverse KL (nats)"}
_OVERLAP = {"diag_overlap_at_{overlap}": "overlap@{overlap}"}
_SMALL = {"num_steps": 300, "vocab_size": 8, "seq_len": 8, "overlap_k": 4}
_OFTEN = _SMALL | {"eval_every": 10}
_NOT_SOFT = ("teacher_temperature", "special_token_weight")

EXPERIMENTS = {
    "compare": Experiment(
        "exact against sampled reverse KL",
        Comparison,
        _comparison,
        {},
        combined="{task}_opd_compare",
        single="{task}_{variant}",
        panels=_ERROR | _DIVERGES | _AGREES,
    ),
    "topk_stability": Experiment(
        "top-k losses from a random start, beside the exact and the sampled one",
        Stability,
        _stability,
        _SMALL,
        fixed=_NOT_SOFT,
        panels=_ERROR | _DIVERGES | _AGREES | _OVERLAP,
    ),
    "topk_cold_start": Experiment(
        "does a warm-up with the full vocabulary make a top-k loss safe",
        ColdStart,
        _cold_start,
        _SMALL,
        fixed=_NOT_SOFT,
        panels=_ERROR | _AGREES | _OVERLAP | _DIVERGES,
    ),
    "topk_warmup_sweep": Experiment(
        "how long a warm-up each size of the top-k set needs",
        WarmupSweep,
        _warmup_sweep,
        _OFTEN,
        fixed=("task", *_NOT_SOFT),
        lines=("objective", "top_k"),
    ),
    "soft_teacher_topk": Experiment(
        "whose top-k set to take if the teacher is graded",
        SoftTeacher,
        _soft_teacher,
        _OFTEN | {"task": "soft_reversal"},
        fixed=("task", "teacher_epsilon"),
        lines=("objective", "support", "top_k"),
    ),
}
