"""Refuse a job of an arm, a seed or a round that the study does not have.

A rule's path takes any seed and any round, so a mistyped target would be planned with all that
leads to it.
"""

from hgrpo.errors import UserError
from hgrpo.stages.files import EVERY_SEED, seeds_of
from hgrpo.stages.job import Job
from hgrpo.stages.order import load
from hgrpo.study.study import Study

# Their rounds count from 1.
_TRAINING = ("rl_round", "credit_fit")
_OF_TRAINED_ARMS = (*_TRAINING, "gradients_round")


def check_job(study: Study, stage: str, job: Job) -> None:
    """Check that the study has the job, as far as the stage's folder names arm, seed and round.

    Raises:
        UserError: it does not. The message says what the study has.
    """
    folder = load(stage).FOLDER
    if "{method}" in folder:
        _check_arm(study, stage, job)
    if "{seed}" in folder and job.seed not in (seeds := seeds_of(study, job.method)):
        if not study.methods[job.method].train:
            raise UserError(f"{job.method} is not trained: its seed_{EVERY_SEED} is for every seed")
        raise UserError(
            f"seed {job.seed} was asked for, but the study has {', '.join(map(str, seeds))}; to "
            f"train it too, add seeds={','.join(map(str, [*seeds, job.seed]))} to --config"
        )
    if "{round}" in folder:
        _check_round(study, stage, job)


def _check_arm(study: Study, stage: str, job: Job) -> None:
    if stage in _OF_TRAINED_ARMS and not study.methods[job.method].train:
        raise UserError(
            f"{stage} of {job.method} was asked for, but {job.method} is not trained; the study "
            f"trains {', '.join(study.step_trajectories) or 'no arm'}"
        )


def _check_round(study: Study, stage: str, job: Job) -> None:
    last = study.config.rounds
    if job.round > last:
        raise UserError(
            f"round {job.round} was asked for, but the study has {last}; to train more, add "
            f"rounds={job.round} to --config"
        )
    if stage in _TRAINING and job.round < 1:
        raise UserError(
            f"{stage} of round {job.round} was asked for, but its rounds are 1 to {last}"
        )
    if job.round and job.method and not study.methods[job.method].train:
        raise UserError(
            f"round {job.round} of {job.method} was asked for, but {job.method} is not trained, "
            "so it has round 0 alone"
        )
