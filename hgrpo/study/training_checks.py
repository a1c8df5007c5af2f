"""Check the section `training` against the arms, the environment and the study."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.learning.settings import GaeConfig

if TYPE_CHECKING:
    from hgrpo.study.study import Study


def check_training(study: "Study", path: Path) -> None:
    """Raise UserError for the first key of `training` that conflicts with an arm or the study."""
    trained = [name for name, method in study.methods.items() if method.train]
    for check in (_of_method, _of_tasks, _of_length):
        for name in trained:
            for mistake in check(study, name):
                raise UserError(f"{path}: {mistake}")
    for mistake in _of_gae(study):
        raise UserError(f"{path}: training.gae.{mistake}")


def _of_method(study: "Study", name: str) -> Iterator[str]:
    method, training = study.methods[name], study.training[name]
    if method.alpha == 0 and training.invalid_action_penalty:
        yield (
            f"training.invalid_action_penalty: no effect on {name}, because it is part of the "
            "trajectory advantage and alpha is 0 (state-graph methods have credit.invalid)"
        )
    if method.objective.grouped and training.importance_cap is not None:
        yield (
            f"{name}: objective.rule: {method.objective.rule} has trajectory-level weights, but "
            "training.importance_cap is token-level; set it to null"
        )
    compares = (method.alpha == 1 or method.turn_norm == "position") and not method.uses_critic
    if compares and training.rollouts_per_task == 1:
        yield (
            f"training.rollouts_per_task: 1: {name} compares the rollouts of a task, so it "
            "requires at least two"
        )
    if training.dynamic_sampling and method.dead_groups == "keep":
        yield (
            f"training.dynamic_sampling: {name} has dead_groups: keep, but dynamic sampling "
            "excludes dead groups from the update"
        )
    if training.dynamic_sampling and method.uses_critic:
        yield (
            f"training.dynamic_sampling: {name} has advantage: {method.advantage}, for which there "
            "are no dead groups"
        )


def _of_tasks(study: "Study", name: str) -> Iterator[str]:
    """Yield messages about keys that require too many tasks or too large minibatches."""
    training, games, env = study.training[name], study.env.panels.train, study.config.env
    many = training.tasks_per_step
    if games is not None and games < many:
        yield (
            f"training.tasks_per_step: {name} plays {many} tasks a step, but the train panel of "
            f"env {env!r} has {games}"
        )
    if games == many and training.dynamic_sampling:
        yield (
            f"training.dynamic_sampling: {name} plays {many} tasks a step, but the train panel of "
            f"env {env!r} has no further tasks"
        )
    batch = many * training.rollouts_per_task
    for key in ("minibatches", "minibatch_trajectories"):
        value, default = getattr(training, key), type(training).model_fields[key].default
        if value and value > batch and value != default:
            yield f"training.{key}: {value}: a batch of {name} has {batch} trajectories"


def _of_length(study: "Study", name: str) -> Iterator[str]:
    """Yield messages about keys that require validation, or more steps than the run has."""
    stops, training = study.training[name].stops, study.training[name]
    if stops.low_validation and not study.config.evaluation.validate_trained:
        yield (
            f"training.stops.low_validation: {name} would be stopped by the validation panel, but "
            "evaluation.validate_trained is false"
        )
    # Skip the other checks if the command line shortens the run, e.g. for a quick test.
    if any(key in ("rounds", "training.steps_per_round") for key in study.overridden):
        return
    steps, warmup = study.config.rounds * training.steps_per_round, training.critic.warmup_steps
    if study.methods[name].uses_critic and warmup >= steps:
        yield (
            f"training.critic.warmup_steps: {warmup}: {name} has only {steps} steps in total, so "
            "its policy would not be trained"
        )
    # The first `window` steps define the baseline. A stop requires at least `window` more steps.
    collapse = stops.reward_collapse
    if collapse and 2 * collapse.window > steps:
        yield (
            f"training.stops.reward_collapse.window: {collapse.window}: {name} has {steps} steps "
            f"in total, but the rule requires {2 * collapse.window}"
        )


def _of_gae(study: "Study") -> Iterator[str]:
    advantages = {method.advantage for method in study.methods.values() if method.train}
    readers = {"gamma_high": {"bi_level_gae"}, "truncation": {"gae", "turn_gae", "bi_level_gae"}}
    for key, names in readers.items():
        value, default = (getattr(gae, key) for gae in (study.config.training.gae, GaeConfig()))
        if value != default and not advantages & names and "methods" not in study.overridden:
            yield (
                f"{key}: {value} is used only by arms with advantage: {', '.join(sorted(names))}, "
                "and the study has no such arm"
            )
