"""Checks of a study as a whole: what its sections, methods and environment ask of each other."""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.config.read import did_you_mean
from hgrpo.envs.kinds import load
from hgrpo.errors import UserError
from hgrpo.evaluation.endpoint import check_budget
from hgrpo.evaluation.settings import Budget
from hgrpo.study.training_checks import TRAINING

if TYPE_CHECKING:
    from hgrpo.study.study import Study


def check(study: "Study", path: Path) -> None:
    """Refuse a study whose parts do not fit together.

    Args:
        path: the study's file, for messages.

    Raises:
        UserError: the message names the file and the key.
    """
    for part in (
        _check_reference,
        _check_labels,
        _check_capabilities,
        _check_smoke_wave,
        _check_cut,
        _check_endpoint,
        _check_gates,
        _check_pairs,
        _check_truth,
        _check_gradients,
        _check_panels,
        *TRAINING,
    ):
        part(study, path)


def _check_reference(study: "Study", path: Path) -> None:
    """Refuse a study's file without its reference; a run of other arms may wait for it."""
    config = study.config
    if study.has_reference and not study.methods[config.reference].train:
        raise UserError(f"{path}: reference: {config.reference!r} is not a trained method")
    if not study.has_reference and "methods" not in study.overridden:
        raise UserError(
            f"{path}: reference: {config.reference!r} is not among the methods "
            f"({', '.join(config.methods)})"
        )


def _check_labels(study: "Study", path: Path) -> None:
    shown: dict[str, str] = {}
    for name, method in study.methods.items():
        other = shown.setdefault(method.shown_label, name)
        if other != name:
            raise UserError(
                f"{path}: methods: {other} and {name} would both be shown as "
                f"{method.shown_label!r}; give one another label"
            )


def _check_capabilities(study: "Study", path: Path) -> None:
    """Refuse credit that asks more of the environment than the environment can tell."""
    environment = load(study.env.name)
    for name, method in study.methods.items():
        for capability in method.credit.declared.uses if method.train else ():
            if environment.lacks(capability):
                raise UserError(
                    f"{path}: methods: {name}: credit.kind {method.credit.kind!r} needs "
                    f"`{capability}` in hgrpo/envs/{environment.name}/__init__.py"
                )


def _check_smoke_wave(study: "Study", path: Path) -> None:
    methods = [*study.config.methods, *study.config.variants]
    for name in study.config.smoke_wave:
        if name not in methods and "methods" not in study.overridden:
            raise UserError(
                f"{path}: smoke_wave: {name!r} is not among the methods"
                f"{did_you_mean(name, methods)}"
            )


def _check_cut(study: "Study", path: Path) -> None:
    """Refuse a tiny model whose tokenizer cuts text in another way than the environment needs."""
    asked, own = study.model.tiny and study.model.tiny.cut, load(study.env.name).cut.name
    if asked not in (None, own):
        raise UserError(
            f"configs/models/{study.config.model}.yaml: tiny.cut: {asked!r}: the text of "
            f"{study.env.name} is cut by {own!r}; leave the key out"
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
    """Refuse a gate of an arm that the study's file does not have."""
    config = study.config
    for gate in config.evaluation.gates:
        if gate.arm == config.reference:
            raise UserError(f"{path}: evaluation.gates: {gate.arm} is the reference itself")
        # A run of other arms leaves its gates open.
        known = [*config.methods, *config.variants]
        if gate.arm not in known and not _has_other_arms(study):
            raise UserError(
                f"{path}: evaluation.gates: {gate.arm!r} is not among the methods"
                f"{did_you_mean(gate.arm, known)}"
            )


def _has_other_arms(study: "Study") -> bool:
    """Whether the command line changes which arms there are."""
    return any(key.split(".")[0] in ("methods", "axes", "axes_of") for key in study.overridden)


def _check_pairs(study: "Study", path: Path) -> None:
    """Refuse a pair of arms that the study's file does not have, or that is compared anyway."""
    config = study.config
    plays_only = {name for name, method in study.methods.items() if not method.train}
    known = [name for name in [*config.methods, *config.variants] if name not in plays_only]
    for pair in config.evaluation.pairs:
        for arm in (pair.arm, pair.against):
            if arm == config.reference:
                raise UserError(
                    f"{path}: evaluation.pairs: {arm} is the reference, with which all arms are "
                    "compared anyway"
                )
            if arm not in known and not _has_other_arms(study):
                raise UserError(
                    f"{path}: evaluation.pairs: {arm!r} is not among the trained methods"
                    f"{did_you_mean(arm, known)}"
                )


def _check_played(study: "Study", path: Path, section: str, after_rounds: list[int]) -> None:
    if after_rounds[-1] > study.config.rounds:
        raise UserError(
            f"{path}: {section}.after_rounds: {after_rounds[-1]}: the study has "
            f"{study.config.rounds} rounds"
        )


def _check_gradients(study: "Study", path: Path) -> None:
    """Refuse gradients of a round that is not played, and of more tasks than the panel has."""
    gradients, tasks = study.config.gradients, study.env.panels.analysis
    if gradients is None:
        return
    _check_played(study, path, "gradients", gradients.after_rounds)
    if gradients.with_validation and not study.config.evaluation.validate_trained:
        raise UserError(
            f"{path}: gradients.with_validation: evaluation.validate_trained is false, so trained "
            "policies do not play the validation panel"
        )
    for name, method in study.methods.items():
        if method.train and method.objective.rule not in ("PPOClip", "DualClip"):
            raise UserError(
                f"{path}: gradients: {name} trains with objective.rule: {method.objective.rule}, "
                "but the analysis measures the gradient of PPOClip; leave the arm out"
            )
    if gradients.groups > tasks:
        raise UserError(
            f"{path}: gradients.groups: {gradients.groups} tasks are wanted, but env "
            f"{study.config.env!r} has panels.analysis: {tasks}"
        )


def _check_truth(study: "Study", path: Path) -> None:
    """Refuse truth of a round that is not played, and of more games than there are."""
    truth, games = study.config.truth, study.env.panels.train
    if truth is None:
        return
    _check_played(study, path, "truth", truth.after_rounds)
    if games is not None and truth.groups > games:
        raise UserError(
            f"{path}: truth.groups: {truth.groups} games are wanted, but the train panel of env "
            f"{study.config.env!r} holds {games}"
        )


def _check_panels(study: "Study", path: Path) -> None:
    for panel in ("validation", "test"):
        wanted = getattr(study.config.evaluation, f"{panel}_games")
        games = getattr(study.env.panels, panel)
        if games is not None and wanted > games:
            raise UserError(
                f"{path}: evaluation.{panel}_games: {wanted} games are wanted, but the {panel} "
                f"panel of env {study.config.env!r} holds {games}"
            )
