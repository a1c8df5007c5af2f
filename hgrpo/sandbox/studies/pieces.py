"""The pieces with their settings and trainers."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hgrpo.config.strict import Strict
from hgrpo.sandbox.tasks import CHAINS

_PIECES = "hgrpo.sandbox"


@dataclass(frozen=True)
class Piece:
    """A piece of the sandbox. `settings` and `trains` are import paths such as "rl.train.Trainer".

    `trains` is a function that maps settings to rows of the log, or a class with a method `run`.
    """

    settings: str
    trains: str
    # Settings for a very short test run. `tiny_tasks` maps a task to its additional settings.
    tiny: Mapping[str, Any]
    tiny_tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def shortened(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a tiny run; phases of training start at consecutive steps."""
        phases = settings.get("phases", ())
        early = [{**phase, "start": place} for place, phase in enumerate(phases)]
        of_task = self.tiny_tasks.get(settings.get("task", ""), {})
        return {**settings, **self.tiny, **of_task, **({"phases": early} if early else {})}

    @property
    def model(self) -> type[Strict]:
        return _load(self.settings)

    @property
    def root(self) -> str:
        """The entry module of a run."""
        return f"{_PIECES}.{self.trains.rpartition('.')[0]}"

    @property
    def trainer(self) -> Any:
        """The object at `trains`; imports PyTorch."""
        return _load(self.trains)

    def rows(self, settings: Strict) -> list[dict[str, Any]]:
        """Train a run; return one row per evaluation and seed."""
        made = self.trainer
        return made(settings).run() if isinstance(made, type) else made(settings)


_TINY = {"num_steps": 4, "eval_every": 2}
PIECES = {
    "rl": Piece(
        "rl.settings.RlSettings",
        "rl.train.Trainer",
        _TINY,
        {name: {"seq_len": 4} for name in ("token_reversal", *CHAINS)}
        | {"masked_reversal": {"seq_len": 4, "score_len": 2}},
    ),
    "opd": Piece("opd.settings.OpdSettings", "opd.train.Trainer", _TINY | {"seq_len": 4}),
    "opd_microscope": Piece(
        "opd.microscope.settings.MicroscopeSettings",
        "opd.microscope.measure.measure",
        {"horizons": (2, 3), "num_batches": 2, "batch_size": 4, "reference_batches": 2},
    ),
    "vpo": Piece("vpo.settings.VpoSettings", "vpo.train.Trainer", _TINY),
    "pedagogy": Piece("pedagogy.settings.PedagogySettings", "pedagogy.train.Trainer", _TINY),
}


def rule_classes(settings: Strict) -> list[str]:
    """The classes of the run's rules, such as "hgrpo.formulas.dg_variants:FreshDG"."""
    classes = {type(rule) for rule in settings.rules}
    return sorted(f"{each.__module__}:{each.__name__}" for each in classes)


def _load(name: str) -> Any:
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(f"{_PIECES}.{module}"), member)
