"""The runs of a study."""

from hgrpo.report.run_status import RunPlan
from hgrpo.stages.files import seeds_of
from hgrpo.study.study import Study


def run_plans(study: Study) -> list[RunPlan]:
    """Every run (an arm and a seed) of a study, the reference's first."""
    arms = sorted(study.methods, key=lambda name: name != study.config.reference)
    return [
        RunPlan(name, seed, study.config.rounds, study.training[name].steps_per_round)
        if study.methods[name].train
        else RunPlan(name, seed, 0, 0)
        for name in arms
        for seed in seeds_of(study, name)
    ]
