"""Check that the sections, methods and environment of a study are consistent."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError, did_you_mean
from hgrpo.evaluation.endpoint import check_budget
from hgrpo.evaluation.settings import Budget
from hgrpo.games.kinds import load
from hgrpo.study.training_checks import check_training

if TYPE_CHECKING:
    from hgrpo.study.study import Study


def check(study: "Study", path: Path) -> None:
    """Raise UserError if the parts of a study are inconsistent.

    `path` is the path of the study's file, for messages.
    """
    for part in _CHECKS:
        part(study, path)


def _check_reference(study: "Study", path: Path) -> None:
    config = study.config
    if study.has_reference and not study.methods[config.reference].train:
        raise UserError(f"{path}: reference: {config.reference!r} is not a trained method")
    elsewhere = config.methods and config.reference not in config.methods
    if elsewhere and "methods" not in study.overridden:
        raise UserError(
            f"{path}: reference: {config.reference!r} is not among the methods "
            f"({', '.join(config.methods)})"
        )


def _check_known(
    key: str, arms: Iterable[str], known: Iterable[str], path: Path, what: str = "methods"
) -> None:
    for arm in arms:
        if arm not in known:
            file = path.parent.parent / "methods" / f"{arm}.yaml"
            hint = "; add it there, or remove it here" if file.is_file() else ""
            raise UserError(
                f"{path}: {key}: {arm!r} is not among the {what}{hint or did_you_mean(arm, known)}"
            )


def _check_labels(study: "Study", path: Path) -> None:
    owners: dict[str, str] = {}
    for name, method in study.methods.items():
        other = owners.setdefault(method.full_label, name)
        if other != name:
            raise UserError(
                f"{path}: methods: {other} and {name} have the same label "
                f"{method.full_label!r}; change one of the labels"
            )


def _check_capabilities(study: "Study", path: Path) -> None:
    environment = load(study.env.name)
    for name, method in study.methods.items():
        for capability in method.credit.declared.uses if method.train else ():
            if environment.lacks(capability):
                raise UserError(
                    f"{path}: methods: {name}: credit.kind {method.credit.kind!r} requires "
                    f"`{capability}` in hgrpo/games/{environment.name}/__init__.py"
                )


def _check_smoke_wave(study: "Study", path: Path) -> None:
    known = [*study.config.methods, *study.config.variants]
    if "methods" not in study.overridden:
        _check_known("smoke_wave", study.config.smoke_wave, known, path)


def _check_cut(study: "Study", path: Path) -> None:
    cut, expected = study.model.tiny and study.model.tiny.cut, load(study.env.name).cut.name
    if cut not in (None, expected):
        raise UserError(
            f"configs/models/{study.config.model}.yaml: tiny.cut: {cut!r}: the environment "
            f"{study.env.name} requires {expected!r}; remove `tiny.cut`"
        )


def _check_endpoint(study: "Study", path: Path) -> None:
    config = study.config
    endpoint = config.evaluation.endpoint
    if not isinstance(endpoint, Budget):
        return
    for name, trajectories in study.round_trajectories.items():
        try:
            check_budget(endpoint.budget, config.rounds, trajectories)
        except ValueError as error:
            raise UserError(f"{path}: evaluation.endpoint.budget: {name}: {error}") from None


def _check_gates(study: "Study", path: Path) -> None:
    config = study.config
    gated = [gate.arm for gate in config.evaluation.gates]
    if config.reference in gated:
        raise UserError(f"{path}: evaluation.gates: {config.reference} is the reference itself")
    # If the command line changed the arms, allow gates for arms that are not in this run.
    if not _has_other_arms(study):
        _check_known("evaluation.gates", gated, [*config.methods, *config.variants], path)


def _has_other_arms(study: "Study") -> bool:
    changed = {key if key == "methods" else key.split(".")[0] for key in study.overridden}
    return not changed.isdisjoint({"methods", "axes", "axes_of"})


def _check_pairs(study: "Study", path: Path) -> None:
    config = study.config
    plays_only = {name for name, method in study.methods.items() if not method.train}
    known = [name for name in [*config.methods, *config.variants] if name not in plays_only]
    paired = [arm for pair in config.evaluation.pairs for arm in (pair.arm, pair.against)]
    if config.reference in paired:
        raise UserError(
            f"{path}: evaluation.pairs: {config.reference} is the reference; every arm is already "
            "compared with it"
        )
    if not _has_other_arms(study):
        _check_known("evaluation.pairs", paired, known, path, "trained methods")


def _check_played(study: "Study", path: Path, section: str, after_rounds: list[int]) -> None:
    if after_rounds[-1] > study.config.rounds:
        raise UserError(
            f"{path}: {section}.after_rounds: {after_rounds[-1]}: the study has only "
            f"{study.config.rounds} rounds"
        )


def _check_gradients(study: "Study", path: Path) -> None:
    gradients, tasks = study.config.gradients, study.env.panels.analysis
    if gradients is None:
        return
    _check_played(study, path, "gradients", gradients.after_rounds)
    if gradients.with_validation and not study.config.evaluation.validate_trained:
        raise UserError(
            f"{path}: gradients.with_validation: requires `evaluation.validate_trained: true`, "
            "because trained policies must be evaluated on the validation panel"
        )
    for name, method in study.methods.items():
        if method.train and method.objective.rule not in ("PPOClip", "DualClip"):
            raise UserError(
                f"{path}: gradients: {name} has `objective.rule: {method.objective.rule}`, but the "
                "analysis supports only PPOClip and DualClip; remove the arm"
            )
    if gradients.groups > tasks:
        raise UserError(
            f"{path}: gradients.groups: {gradients.groups} tasks requested, but env "
            f"{study.config.env!r} has `panels.analysis: {tasks}`"
        )


def _check_truth(study: "Study", path: Path) -> None:
    truth, games = study.config.truth, study.env.panels.train
    if truth is None:
        return
    _check_played(study, path, "truth", truth.after_rounds)
    if games is not None and truth.groups > games:
        raise UserError(
            f"{path}: truth.groups: {truth.groups} games requested, but the train panel of env "
            f"{study.config.env!r} has {games}"
        )


def _check_panels(study: "Study", path: Path) -> None:
    for panel in ("validation", "test"):
        number = getattr(study.config.evaluation, f"{panel}_games")
        games = getattr(study.env.panels, panel)
        if games is not None and number > games:
            raise UserError(
                f"{path}: evaluation.{panel}_games: {number} games requested, but the {panel} "
                f"panel of env {study.config.env!r} has {games}"
            )


_CHECKS = (
    _check_reference,
    _check_smoke_wave,
    _check_gates,
    _check_pairs,
    _check_labels,
    _check_capabilities,
    _check_cut,
    _check_endpoint,
    _check_truth,
    _check_gradients,
    _check_panels,
    check_training,
)
