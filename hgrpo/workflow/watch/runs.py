"""The runs of a study."""

from hgrpo.report.run_status import RunPlan
from hgrpo.stages.files import seeds_of
from hgrpo.study.study import Study
from hgrpo.workflow.watch.jobs import settings_of


def run_plans(study: Study) -> list[RunPlan]:
    """Every run (an arm and a seed) of a study, the reference's first."""
    arms = sorted(study.methods, key=lambda name: name != study.config.reference)
    return [
        RunPlan(
            *(name, seed),
            *((rounds, study.training[name].steps_per_round) if train else (0, 0)),
            settings=settings_of(study, "rl_round", name) if train else "",
            evaluation=settings_of(study, "evaluate", name),
        )
        for name in arms
        for train, rounds in [(study.methods[name].train, study.config.rounds)]
        for seed in seeds_of(study, name)
    ]
