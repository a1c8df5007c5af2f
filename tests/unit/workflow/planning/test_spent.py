"""What a study has cost: by hand."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from hgrpo.cli.cost import lines, spent
from hgrpo.report.logs import OPTIONAL, REQUIRED
from hgrpo.store.plan import MADE, STORE
from hgrpo.study.resources import Resources
from hgrpo.workflow.planning.profile import Prices, Profile

PRICES = Prices(core_hour=0.1, gpu_hour=2.0, currency="euros", example=True)
PRICED = Profile(Path("profiles/slurm"), None, prices=PRICES)
ASKED = Resources(rl_round={"gpu": 1, "threads": 8}, sft={"threads": 2})
# The parts of a record that do not matter here.
RECORD = dict.fromkeys(("settings", "code", "contents"), "0" * 16)
RECORD |= dict.fromkeys(("finished", "host", "processor"), "") | {"bytes": 1, "user_files": None}
RECORD |= {"inputs": {}, "files": {}}


@pytest.fixture
def folder():
    """SFT of an hour; two rounds of an arm of half an hour each; an evaluation of 36 seconds.

    A result that no link leads to, of a thousand seconds, counts for nothing.
    """
    results, row = Path("results/mine"), dict.fromkeys((*REQUIRED, *OPTIONAL), 0.0)
    rows = [row | {"judge_dollars": 0.25, "step": step} for step in range(2)]
    made(results / "sft", "sft", 3600.0)
    for number in (1, 2):
        home = results / f"rl/LLMJudge/seed_11/round_{number}"
        made(home, "rl_round", 1800.0, "LLMJudge")
        (home / "train_log.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    made(results / "eval/SFTOnly/seed_11/round_0", "evaluate", 36.0, "SFTOnly")
    made(results / "eval/Moved/seed_11/round_0", "evaluate", 1000.0, "Moved")
    (results / "eval/Moved/seed_11/round_0").unlink()
    return results


def made(place, stage, seconds, method="", **more):
    """A finished job with its link."""
    key = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    folder = STORE / key / place.relative_to("results/mine")
    folder.mkdir(parents=True, exist_ok=True)
    job = {"method": method, "seed": 11, "round": 1}
    content = RECORD | {"key": key, "stage": stage, "job": job, "seconds": seconds} | more
    (STORE / key / MADE).write_text(json.dumps(content), encoding="utf-8")
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        place.symlink_to(os.path.relpath(folder, place.parent))


def test_hours_gpus_judges_and_money(folder):
    rows = dict(spent(folder, ["SFTOnly", "LLMJudge"], ASKED, PRICED).iterrows())
    assert list(rows) == ["shared", "SFTOnly", "LLMJudge", "all"]
    assert (rows["shared"].jobs, rows["shared"].core_hours, rows["shared"].gpu_hours) == (1, 2.0, 0)
    assert rows["shared"].money == pytest.approx(0.2)
    judge = rows["LLMJudge"]
    assert (judge.jobs, judge.seconds, judge.core_hours, judge.gpu_hours) == (2, 3600.0, 8.0, 1.0)
    assert judge.money == pytest.approx(0.8 + 2.0)
    assert judge.judge_dollars == pytest.approx(4 * 0.25)
    assert rows["SFTOnly"].money == pytest.approx(0.01 * 0.1)
    assert rows["all"].jobs == 4 and rows["all"].money == pytest.approx(0.2 + 2.8 + 0.001)


def test_rounds_taken_from_an_equal_job_cost_no_time_here(folder):
    second = folder / "rl/LLMJudge/seed_11/round_2"
    made(second, "rl_round", 1800.0, "LLMJudge", taken_from="0123456789abcdef")
    judge = spent(folder, ["LLMJudge"], ASKED, PRICED).loc["LLMJudge"]
    assert (judge.jobs, judge.seconds, judge.gpu_hours) == (1, 1800.0, 0.5)


def test_a_job_holds_no_more_cores_than_the_machine_has(folder):
    laptop = Profile(Path("profiles/laptop"), cores=2)
    assert spent(folder, ["LLMJudge"], ASKED, laptop).loc["LLMJudge"].core_hours == 2.0


def test_without_prices_there_is_no_money(folder):
    rows = spent(folder, ["SFTOnly", "LLMJudge"], ASKED, Profile(Path("profiles/laptop"), 2))
    assert "money" not in rows
    assert "euros" not in lines(rows, None)[0]


def test_the_table_is_aligned_and_says_that_prices_are_made_up(folder):
    table = lines(spent(folder, ["LLMJudge"], ASKED, PRICED), PRICES)
    assert table[0].split() == [
        *("arm", "jobs", "seconds", "core-hours", "GPU-hours", "euros", "tokens", "judge", "$")
    ]
    assert len({len(line) for line in table[:-1]}) == 1
    assert table[-1] == "the profile's prices are examples"


def test_an_empty_study_costs_nothing(tmp_path):
    costs = spent(tmp_path, ["flatGRPO"], Resources(), PRICED)
    assert list(costs.index) == ["all"]
    assert (costs.loc["all"].jobs, costs.loc["all"].money) == (0, 0)
