"""Every shipped study has a plan, with the jobs that its arms, seeds and rounds come to."""

from collections import Counter

import pytest
from places import PROJECT

from hgrpo.stages.files import downloads
from hgrpo.store.plan import STORE, Plan, flat
from hgrpo.study.study import load_study

STUDIES = sorted(path.stem for path in (PROJECT / "configs/studies").glob("*.yaml"))
ONCE = ("study_config", "assets", "expert", "base", "sft", "merge", "figures", "report")


def expected_jobs(study) -> dict[str, int]:
    """Stage -> number of jobs, worked out from the study."""
    seeds, rounds = len(study.config.seeds), study.config.rounds
    arms = study.methods.values()
    trained = sum(arm.train for arm in arms)
    fitted = sum(arm.train and arm.credit.declared.fits for arm in arms)
    count = dict.fromkeys(ONCE, 1) | {"fetch_assets": int(downloads(study))}
    count["rl_round"] = trained * seeds * rounds
    count["evaluate"] = count["rl_round"] + len(arms) - trained
    count["credit_fit"] = fitted * seeds * (rounds - 1)
    return {stage: number for stage, number in count.items() if number}


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_study_has_a_plan(name, monkeypatch):
    for variable in ("ALFWORLD_DATA", "WEBSHOP_DATA", "HGRPO_MODELS"):
        monkeypatch.delenv(variable, raising=False)
    path = PROJECT / f"configs/studies/{name}.yaml"
    seeds = load_study(path).config.seeds
    # More seeds are more of the same jobs.
    study = load_study(path, {"seeds": [seeds[0]]})
    plan = Plan(study)
    jobs = list(plan.jobs())
    assert Counter(planned.stage for planned in jobs) == expected_jobs(study)
    assert len({planned.key for planned in jobs}) == len(jobs)
    # The report is made from all of it, and every input is an output of another job.
    assert {planned.key for planned in plan.to_run()} == {planned.key for planned in jobs}
    every = list(plan.jobs(asked_for=True)) if study.config.gradients else jobs
    made = {path for planned in every for path in flat(planned.outputs)}
    assert all(path in made for planned in every for path in flat(planned.inputs))
    assert all(path.startswith(f"{STORE}/") for path in made)
