"""Checks of a study as a whole: what its sections, methods and environment ask of each other."""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.config.read import did_you_mean
from hgrpo.envs.kinds import load
from hgrpo.errors import UserError
from hgrpo.evaluation.endpoint import check_budget
from hgrpo.evaluation.settings import Budget
from hgrpo.learning.gae_settings import GaeConfig

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
        _check_penalty,
        _check_rule,
        _check_group_size,
        _check_dynamic_sampling,
        _check_tasks,
        _check_low_validation,
        _check_length,
        _check_gae,
        _check_minibatches,
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
    return any(key.split(".")[0] in ("methods", "axes") for key in study.overridden)


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


def _check_rule(study: "Study", path: Path) -> None:
    """Refuse an update rule of whole groups whose tokens would need weights of their own."""
    for name, method in study.methods.items():
        of_groups = method.train and method.objective.declared.of_groups
        if of_groups and study.training[name].importance_cap is not None:
            raise UserError(
                f"{path}: {name}: objective.rule: {method.objective.rule} weighs whole "
                "trajectories, and training.importance_cap weighs tokens; set it to null"
            )


def _check_penalty(study: "Study", path: Path) -> None:
    for name, method in study.methods.items():
        if method.train and method.alpha == 0 and study.training[name].invalid_action_penalty:
            raise UserError(
                f"{path}: training.invalid_action_penalty: {name} would not notice it, since it "
                "enters the trajectory's advantage and alpha is 0 (methods of the state graph have "
                "credit.invalid)"
            )


def _check_group_size(study: "Study", path: Path) -> None:
    for name, method in study.methods.items():
        in_group = method.alpha == 1 or method.turn_norm == "position"
        compares = in_group and not method.uses_critic
        if method.train and compares and study.training[name].rollouts_per_task == 1:
            raise UserError(
                f"{path}: training.rollouts_per_task: 1: {name} compares rollouts of a task with "
                "each other, so one alone teaches it nothing"
            )


def _check_tasks(study: "Study", path: Path) -> None:
    """Refuse a step of more tasks than the train panel has."""
    games = study.env.panels.train
    for name, method in study.methods.items():
        many = study.training[name].tasks_per_step
        if method.train and games is not None and games < many:
            raise UserError(
                f"{path}: training.tasks_per_step: {name} plays {many} tasks a step, but the train "
                f"panel of env {study.config.env!r} has {games}"
            )


def _check_low_validation(study: "Study", path: Path) -> None:
    """Refuse a rule for stopping that reads a panel which trained arms do not play."""
    if study.config.evaluation.validate_trained:
        return
    for name, method in study.methods.items():
        if method.train and study.training[name].stops.low_validation:
            raise UserError(
                f"{path}: training.stops.low_validation: {name} would be stopped by the validation "
                "panel, but evaluation.validate_trained is false"
            )


def _check_dynamic_sampling(study: "Study", path: Path) -> None:
    """Refuse dynamic sampling that has no further tasks, or whose arm keeps dead groups."""
    games = study.env.panels.train
    for name, method in study.methods.items():
        training = study.training[name]
        if not method.train or training.dynamic_sampling is None:
            continue
        if method.dead_groups == "keep":
            raise UserError(
                f"{path}: training.dynamic_sampling: {name} has dead_groups: keep, but dynamic "
                "sampling leaves dead groups out of the update"
            )
        if method.uses_critic:
            raise UserError(
                f"{path}: training.dynamic_sampling: {name} has advantage: {method.advantage}, "
                "under which no group is dead"
            )
        if games is not None and games <= training.tasks_per_step:
            raise UserError(
                f"{path}: training.dynamic_sampling: {name} plays {training.tasks_per_step} tasks "
                f"a step, and the train panel of env {study.config.env!r} has no further ones"
            )


def _check_length(study: "Study", path: Path) -> None:
    """Refuse a file's settings that would only begin to act after the last step of a run.

    A command that plays fewer rounds or steps may want no more than a first look.
    """
    if any(key in ("rounds", "training.steps_per_round") for key in study.overridden):
        return
    for name, method in study.methods.items():
        training = study.training[name]
        steps, collapse = (
            study.config.rounds * training.steps_per_round,
            training.stops.reward_collapse,
        )
        if method.train and method.uses_critic and training.critic.warmup_steps >= steps:
            raise UserError(
                f"{path}: training.critic.warmup_steps: {training.critic.warmup_steps}: {name} has "
                f"{steps} steps in all, so its policy would never learn"
            )
        # As many first steps are the baseline, and as many more must lie below the limit.
        if method.train and collapse and 2 * collapse.window > steps:
            raise UserError(
                f"{path}: training.stops.reward_collapse.window: {collapse.window}: {name} has "
                f"{steps} steps in all, and the rule needs {2 * collapse.window}"
            )


def _check_gae(study: "Study", path: Path) -> None:
    """Refuse a discount that no arm reads."""
    advantages = {method.advantage for method in study.methods.values() if method.train}
    if "bi_level_gae" in advantages or "methods" in study.overridden:
        return
    given, default = study.config.training.gae.gamma_high, GaeConfig().gamma_high
    if given != default:
        raise UserError(
            f"{path}: training.gae.gamma_high: {given} is read only by arms with advantage: "
            "bi_level_gae, and the study has none"
        )


def _check_minibatches(study: "Study", path: Path) -> None:
    """Refuse more optimiser steps, or larger ones, than a batch has trajectories."""
    for name, method in study.methods.items():
        training = study.training[name]
        batch = training.tasks_per_step * training.rollouts_per_task
        for key in ("minibatches", "minibatch_trajectories"):
            wanted, default = getattr(training, key), type(training).model_fields[key].default
            if method.train and wanted and wanted > batch and wanted != default:
                raise UserError(
                    f"{path}: training.{key}: {wanted}: a batch of {name} has {batch} trajectories"
                )
