"""Past jobs as a plan and the command `cost` read them from the store."""

import json

import pytest
from watched_study import Watched

from hgrpo.store.entry import linked_jobs
from hgrpo.store.plan import MADE
from hgrpo.workflow.planning.estimates import past_jobs

ROUNDS = [f"flatGRPO seed 11 round {number}" for number in (1, 2)]


@pytest.fixture
def study():
    """A study with its SFT policy and two rounds of an arm."""
    study = Watched()
    study.finish("sft", seconds=50, summary={"a": 1})
    study.finish(*ROUNDS, seconds=100, summary={"a": 1})
    return study


def change(study, name, **changes):
    """Change the record of a job."""
    path = study.jobs[name].entry / MADE
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")


def test_jobs_count_by_stage_and_settings(study):
    past = past_jobs()
    (sft,) = past["sft", study.plan.parts("sft", None)["settings"]]
    rounds = past["rl_round", study.plan.parts("rl_round", "flatGRPO")["settings"]]
    assert sft[0] == pytest.approx(50, abs=1)
    assert [seconds for seconds, _ in rounds] == pytest.approx([100, 100], abs=1)
    log = len(json.dumps({"rows": []}))
    assert all(size > log for _, size in rounds)


@pytest.mark.parametrize("changes", [{"processor": "another"}, {"taken_from": "0123456789abcdef"}])
def test_jobs_of_another_processor_and_copied_results_do_not_count(study, changes):
    change(study, ROUNDS[0], **changes)
    change(study, "sft", **changes)
    past = past_jobs()
    assert len(past["rl_round", study.plan.parts("rl_round", "flatGRPO")["settings"]]) == 1
    assert not past["sft", study.plan.parts("sft", None)["settings"]]


def test_the_jobs_of_a_study_are_those_that_its_folder_leads_to(study):
    def stages():
        return sorted(made["stage"] for made in linked_jobs(study.results))

    assert stages() == ["rl_round", "rl_round", "sft", "study_config"]
    (study.results / "sft").unlink()
    assert stages() == ["rl_round", "rl_round", "study_config"]
