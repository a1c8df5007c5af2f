"""Every job of a study with its files, from the stages' own declarations."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.config.canonical import settings_digest
from hgrpo.stages.files import fits, runs, trained_rounds
from hgrpo.stages.order import belongs_to_an_arm, load
from hgrpo.study.study import Study
from hgrpo.workflow.rules import StudyRules, flat, stages_of

_OF_ARMS = {"rl_round": trained_rounds, "credit_fit": fits, "evaluate": runs}

_NAMES = {"rl_round": "round", "credit_fit": "fit after round", "evaluate": "evaluation of round"}


@dataclass(frozen=True)
class StudyJob:
    """A job that the target of a whole study runs.

    Attributes:
        stage: name of the stage.
        method, seed, round: the run and the round; "", 0 and 0 for a job that serves all runs.
        inputs, outputs: its files.
        log: the file that its messages go to; its progress lies beside it.
        settings: digest of its settings, if its stage records one; else "".
    """

    stage: str
    method: str
    seed: int
    round: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: Path
    settings: str = ""

    @property
    def name(self) -> str:
        """The job in words, such as `flatGRPO seed 11 round 2`."""
        if not self.method:
            return self.stage
        return f"{self.method} seed {self.seed} {_NAMES[self.stage]} {self.round}"


def study_jobs(study: Study, root: Path) -> list[StudyJob]:
    """Every job of a study in the order of the stages; `root` is the study's results folder."""
    of = StudyRules(study, str(root))
    settings = functools.cache(functools.partial(settings_of, study))
    found = []
    for stage in stages_of(study):
        every = _OF_ARMS[stage](study) if belongs_to_an_arm(stage) else [("", 0, 0)]
        for each in every:
            recorded = settings(stage, each[0]) if stage in ("rl_round", "evaluate") else ""
            found.append(_job(of, stage, *each, recorded))
    return found


def _job(of: StudyRules, stage: str, method: str, seed: int, round: int, settings: str) -> StudyJob:
    named: Mapping[str, str] = {}
    if method:
        named = {"method": method, "seed": str(seed), "round": str(round)}

    def files(given: Iterable[str]) -> tuple[str, ...]:
        return tuple(path.format(**named) for path in given)

    return StudyJob(
        *(stage, method, seed, round),
        inputs=files(flat(of.inputs(stage)(named))),
        outputs=files(flat(of.outputs(stage))),
        log=Path(of.log(stage).format(**named)),
        settings=settings,
    )


def settings_of(study: Study, stage: str, method: str) -> str:
    """Digest of the settings that an arm's job of a stage runs with, with every default."""
    module = load(stage)
    settings = module.Settings.model_validate(module.from_study(study, method))
    return settings_digest(settings.model_dump(mode="json"))
