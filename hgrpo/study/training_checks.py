"""Checks of what a study's arms train with: what keys of `training` ask of arm and environment.

Each check takes the study and its file's path, and raises UserError with file, key and value.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.learning.settings import GaeConfig

if TYPE_CHECKING:
    from hgrpo.study.study import Study


def _check_rule(study: "Study", path: Path) -> None:
    """Refuse an update rule of whole groups whose tokens would need weights of their own."""
    for name, method in study.methods.items():
        of_groups = method.train and method.objective.grouped
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
        steps = study.config.rounds * training.steps_per_round
        warmup, collapse = training.critic.warmup_steps, training.stops.reward_collapse
        if method.train and method.uses_critic and warmup >= steps:
            raise UserError(
                f"{path}: training.critic.warmup_steps: {warmup}: {name} has {steps} steps in all, "
                "so its policy would never learn"
            )
        # As many first steps are the baseline, and as many more must lie below the limit.
        if method.train and collapse and 2 * collapse.window > steps:
            raise UserError(
                f"{path}: training.stops.reward_collapse.window: {collapse.window}: {name} has "
                f"{steps} steps in all, and the rule needs {2 * collapse.window}"
            )


def _check_gae(study: "Study", path: Path) -> None:
    """Refuse keys of the estimate that no arm reads."""
    advantages = {method.advantage for method in study.methods.values() if method.train}
    readers = {"gamma_high": {"bi_level_gae"}, "truncation": {"gae", "turn_gae", "bi_level_gae"}}
    for key, names in readers.items():
        value, default = (getattr(gae, key) for gae in (study.config.training.gae, GaeConfig()))
        if value != default and not advantages & names and "methods" not in study.overridden:
            raise UserError(
                f"{path}: training.gae.{key}: {value} is read only by arms with advantage: "
                f"{', '.join(sorted(names))}, and the study has none"
            )


def _check_minibatches(study: "Study", path: Path) -> None:
    """Refuse more optimiser steps, or larger ones, than a batch has trajectories."""
    for name, method in study.methods.items():
        training = study.training[name]
        batch = training.tasks_per_step * training.rollouts_per_task
        for key in ("minibatches", "minibatch_trajectories"):
            value, default = getattr(training, key), type(training).model_fields[key].default
            if method.train and value and value > batch and value != default:
                raise UserError(
                    f"{path}: training.{key}: {value}: a batch of {name} has {batch} trajectories"
                )


TRAINING = (
    _check_penalty,
    _check_rule,
    _check_group_size,
    _check_dynamic_sampling,
    _check_tasks,
    _check_low_validation,
    _check_length,
    _check_gae,
    _check_minibatches,
)
