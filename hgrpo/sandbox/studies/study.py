"""Defines and reads a study's file: question, arms, seeds, metric, comparisons and figures."""

import importlib.util
import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.config.read import read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError, did_you_mean
from hgrpo.sandbox.studies.pieces import PIECES

# First seed of the second half of an A/A pair.
_OTHER_SEEDS = 1000
_TINY_SEEDS = (0, 1)


class Metric(Strict):
    """One number per seed: first or last value, mean, time to a threshold, or log-log slope.

    If `until` is given, the last value is taken from the last evaluation up to this time.
    """

    column: str
    at: Literal["first", "end", "mean", "time", "slope"] = "end"
    until: float | None = Field(None, description="end: take the last value up to this time")
    below: float | None = Field(None, description="time: threshold for decreasing columns")
    above: float | None = Field(None, description="time: threshold for increasing columns")
    clock: str = Field("updates", description="time, until, slope: column with the time")
    better: Literal["lower", "higher", "neither"] = "neither"
    margin: float | None = Field(
        None, gt=0, description="differences in means below this are equivalent"
    )
    name: str = Field("", description="name in tables; empty: derived from the other keys")

    @model_validator(mode="after")
    def _has_one_threshold(self) -> Self:
        thresholds = (self.below is not None) + (self.above is not None)
        if thresholds != (self.at == "time"):
            raise ValueError(
                "`at: time` requires `below` or `above`; other metrics do not use them"
            )
        if self.until is not None and self.at != "end":
            raise ValueError("until: requires `at: end`")
        return self

    @property
    def columns(self) -> list[str]:
        timed = self.at in ("time", "slope") or self.until is not None
        return [self.column, *([self.clock] if timed else [])]

    @property
    def verdicts(self) -> list[str]:
        """The possible decisive verdicts; "equivalent" only if the metric has a margin."""
        differ = ["higher", "lower"] if self.better == "neither" else ["better", "worse"]
        return [*differ, *(["equivalent"] if self.margin else [])]

    @property
    def text(self) -> str:
        """The metric's name in tables and on axes."""
        column, clock = self.column.replace("_", " "), self.clock.replace("_", " ")
        if self.name:
            return self.name
        if self.until is not None:
            return f"{column} at {clock} {self.until:g}"
        if self.at == "time":
            word, level = ("≤", self.below) if self.below is not None else ("≥", self.above)
            return f"{clock} until {column} {word} {level:g}"
        if self.at == "slope":
            return f"slope of log {column} over log {clock}"
        suffixes = {"first": ", first value", "mean": ", mean over evaluations"}
        return column + suffixes.get(self.at, "")

    @property
    def is_last(self) -> bool:
        """Whether the metric is the last value of a column."""
        return self.at == "end" and self.until is None

    @property
    def key(self) -> str:
        """The metric's key in `published`: `column` for a last value, `text` for other metrics."""
        return self.column if self.is_last else self.text


class Pair(Strict):
    """A comparison of an arm with another arm, or with a number."""

    arm: str
    against: str | float
    said: Literal["better", "worse", "higher", "lower", "equivalent"] | None = Field(
        None, description="the verdict implied by the inference"
    )
    of: str = Field("", description="the compared aspect, for the table of inferences")

    @model_validator(mode="before")
    @classmethod
    def _takes_a_list(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        if not 2 <= len(value) <= 3:
            raise ValueError("expected [arm, against] or [arm, against, said]")
        return dict(zip(("arm", "against", "said"), value, strict=False))


class Grid(Strict):
    """Arms for all combinations of values; `label` is a template: "{method}, delay {delay}"."""

    label: str
    over: dict[str, list[Any]] = Field(min_length=1)

    @model_validator(mode="after")
    def _label_names_its_settings(self) -> Self:
        named = {name for _, name, _, _ in Formatter().parse(self.label) if name is not None}
        if unknown := sorted(named - {*self.over}):
            near = did_you_mean(unknown[0], self.over)
            raise ValueError(f"label: {unknown[0]!r} is not a setting in `over`{near}")
        return self


class FigureSpec(Strict):
    """A figure: curves over a run, one point per arm, or curves over numbered columns.

    Each panel shows one column of the log; panels are stacked from top to bottom. In a figure with
    one point per arm, the x-axis is the metric `across` or the setting `setting`, and a line
    connects arms whose labels are equal up to the last comma. In a `numbered` figure, a panel such
    as trained_age shows the columns trained_age_0, trained_age_1, ...
    """

    name: str
    title: str
    panels: list[str] = Field(min_length=1)
    x: str = Field(
        "step", description="curves: column on the x-axis; numbered: unit of the numbers"
    )
    kind: Literal["curves", "points", "numbered"] = "curves"
    across: str = Field("", description="points: a column, averaged over evaluations")
    setting: str = Field("", description="points: a setting, such as delay")
    at: Literal["end", "mean"] = Field(
        "mean", description="points: a seed's last value, or its mean over evaluations"
    )
    arms: list[str] = Field(default_factory=list, description="empty: all")
    log: bool = Field(False, description="logarithmic vertical axis")

    @model_validator(mode="after")
    def _says_where_points_lie(self) -> Self:
        if bool(self.across) + bool(self.setting) != (self.kind == "points"):
            raise ValueError(
                "`kind: points` requires `across` or `setting`; other kinds do not use them"
            )
        if self.at == "end" and self.kind != "points":
            raise ValueError("at: requires `kind: points`")
        return self


class Inference(Strict):
    """A conclusion of the original sandbox. The study's pairs with the key `said` test it."""

    number: int = Field(ge=1)
    said: str


class SandboxStudy(Strict):
    """A study, as declared in its file."""

    question: str
    piece: str = "rl"
    seeds: int = Field(10, ge=1, le=_OTHER_SEEDS, description="seeds 0, 1, ... of every arm")
    base: dict[str, Any] = Field(default_factory=dict)
    arms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    grid: Grid | None = None
    metric: Metric
    also: list[Metric] = Field(
        default_factory=list, description="additional metrics in tables, without tests"
    )
    pairs: list[Pair] = Field(default_factory=list)
    identical: list[Pair] = Field(
        default_factory=list, description="arms that differ only by rounding, without tests"
    )
    again: str | None = Field(
        None, description="arm of the A/A pair, which is repeated with different seeds"
    )
    series: str | None = Field(
        None, description="the column with the arm's label, if one run contains all arms"
    )
    published: dict[str, dict[str, tuple[float, float | None]]] = Field(
        default_factory=dict, description="arm -> metric -> published mean and (if known) deviation"
    )
    figures: list[FigureSpec] = Field(default_factory=list)
    inference: Inference | None = None
    tiny: dict[str, Any] = Field(
        default_factory=dict, description="additional changes for tiny runs"
    )
    packages: list[str] = Field(
        default_factory=list, description="required packages, by import name"
    )

    @field_validator("piece")
    @classmethod
    def _is_a_piece(cls, value: str) -> str:
        if value not in PIECES:
            raise ValueError(f"unknown piece{did_you_mean(value, PIECES)}")
        return value

    @model_validator(mode="after")
    def _has_arms_of_its_seeds(self) -> Self:
        labels = Counter([*self.labels, self.other])
        if not self.labels:
            raise ValueError("arms: expected at least one arm")
        if twice := [label for label, many in labels.items() if many > 1]:
            raise ValueError(f"label {twice[0]!r} is not unique")
        varied = [("grid", self.grid.over)] if self.grid else []
        for key, changes in [("base", self.base), *self.arms.items(), *varied]:
            if "seeds" in changes:
                raise ValueError(f"{key}: all arms have the same seeds; set the study's `seeds`")
        return self

    @model_validator(mode="after")
    def _expects_verdicts_of_the_metric(self) -> Self:
        for pair in self.pairs:
            if pair.said is not None and pair.said not in self.metric.verdicts:
                raise ValueError(
                    f"pairs: {pair.arm!r}: {pair.said!r} is not a verdict of this metric; choose "
                    f"from {', '.join(self.metric.verdicts)}"
                )
        return self

    @model_validator(mode="after")
    def _names_its_arms(self) -> Self:
        labels = self.labels
        named = {
            "pairs": [name for pair in self.pairs for name in (pair.arm, pair.against)],
            "identical": [name for pair in self.identical for name in (pair.arm, pair.against)],
            "again": [self.again] if self.again else [],
            "published": [*self.published],
            "figures": [name for figure in self.figures for name in figure.arms],
        }
        for key, names in named.items():
            for name in names:
                if isinstance(name, str) and name not in labels:
                    raise ValueError(f"{key}: unknown arm {name!r}{did_you_mean(name, labels)}")
        metrics = [metric.key for metric in (self.metric, *self.also)]
        for name in {name for each in self.published.values() for name in each}:
            if name not in metrics:
                raise ValueError(f"published: unknown metric {name!r}{did_you_mean(name, metrics)}")
        return self

    @property
    def lacks(self) -> list[str]:
        """Required packages that are not installed."""
        return [name for name in self.packages if importlib.util.find_spec(name) is None]

    @property
    def labels(self) -> list[str]:
        """Labels of all arms in the file. The second half of an A/A pair is not included."""
        return [*self.arms, *(label for label, _ in self._of_grid())]

    @property
    def other(self) -> str | None:
        """Label of the second half of the A/A pair."""
        return f"{self.again}, other seeds" if self.again else None

    def overrides(self) -> dict[str, dict[str, Any]]:
        """Map the label of each arm to its changes to `base`."""
        changes = dict(self.arms) | dict(self._of_grid())
        if self.again:
            seeds = tuple(range(_OTHER_SEEDS, _OTHER_SEEDS + self.seeds))
            changes[self.other] = changes[self.again] | {"seeds": seeds}
        return changes

    def _of_grid(self) -> list[tuple[str, dict[str, Any]]]:
        if self.grid is None:
            return []
        combinations = [
            dict(zip(self.grid.over, values, strict=True))
            for values in itertools.product(*self.grid.over.values())
        ]
        return [(self.grid.label.format(**each), each) for each in combinations]


def read_study(path: Path) -> SandboxStudy:
    """Read a study.

    Raises:
        UserError: the file is invalid; the message has one line per mistake.
    """
    return validate(SandboxStudy, read_yaml(path), str(path))


def resolve(study: SandboxStudy, source: str, tiny: bool = False) -> dict[str, Strict]:
    """Map the label of each arm to its complete, validated settings.

    Args:
        source: the study's file, for messages.
        tiny: whether to shorten every arm to a few steps and two seeds.

    Raises:
        UserError: an arm is invalid, or a figure uses an unknown setting.
    """
    piece, resolved = PIECES[study.piece], {}
    for label, changes in study.overrides().items():
        settings = {"seeds": tuple(range(study.seeds))} | study.base | changes
        if tiny:
            first = min(settings["seeds"])
            settings = piece.shortened(settings) | study.tiny
            settings["seeds"] = tuple(first + seed for seed in _TINY_SEEDS)
        resolved[label] = validate(piece.model, settings, f"{source}: {label}")
    for figure in study.figures:
        if figure.setting and figure.setting not in piece.model.model_fields:
            near = did_you_mean(figure.setting, piece.model.model_fields)
            raise UserError(
                f"{source}: figures: {figure.name}: unknown setting {figure.setting!r}{near}"
            )
    return resolved


def recorded(settings: Strict) -> Mapping[str, Any]:
    """Settings as plain JSON values."""
    return settings.model_dump(mode="json")
