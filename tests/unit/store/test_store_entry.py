"""A finished job's folder, jobs that copy the results of equal ones, and links to results."""

import json
import os
import shutil
from pathlib import Path

import pytest
from stored_study import finish, finished_study, small_plan, write_outputs

from hgrpo.cli import run_stage
from hgrpo.cli.run_stage import run_planned
from hgrpo.errors import UserError
from hgrpo.stages.order import load
from hgrpo.store import entry
from hgrpo.store.entry import (
    link,
    link_planned,
    read_made,
    record,
    sha256,
    take_equal,
    unlink,
    write_job,
    write_plan,
)
from hgrpo.store.plan import MADE, STORE, flat

ROUND = ("rl_round", "Progressive", 11, 1)
PLACE = "rl/Progressive/seed_11/round_1"


def job_of(plan, planned) -> dict:
    """The content of a planned job's job.json."""
    return json.loads(write_job(plan, planned, ["--seed", "11"]).read_bytes())


def files_of(planned) -> dict[str, bytes]:
    return {
        path.removeprefix(f"{planned.entry}/"): Path(path).read_bytes()
        for path in flat(planned.outputs)
    }


def test_a_job_has_its_settings_code_inputs_and_outputs_in_files():
    plan = small_plan()
    planned = plan.find(*ROUND)
    job = job_of(plan, planned)
    assert job["key"] == planned.key and job["words"] == ["--seed", "11"]
    assert f"{PLACE}/summary.json" in job["outputs"]
    inputs = [path for paths in job["inputs"].values() for path in paths]
    assert f"{plan.find('sft').key}/sft/adapter/model.safetensors" in inputs
    settings = json.loads((STORE / f"settings/{job['settings']}.json").read_bytes())
    assert settings == plan.settings("rl_round", "Progressive")
    modules = json.loads((STORE / f"code/{job['code']}.json").read_bytes())
    assert "hgrpo.learning.round" in modules and "hgrpo.credit.progress" in modules
    # Rounds of an arm share both files.
    job_of(plan, plan.find("rl_round", "Progressive", 11, 2))
    assert len(list((STORE / "settings").iterdir())) == len(list((STORE / "code").iterdir())) == 1


def test_edited_settings_are_refused_and_the_next_run_writes_them_anew():
    plan = small_plan()
    planned = plan.find("study_config")
    file = write_job(plan, planned, ["--out", f"{planned.folder}/config.yaml"])
    (settings,) = (STORE / "settings").iterdir()
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("11", "12"), encoding="utf-8")
    with pytest.raises(UserError, match=f"^{settings}: the file was edited; start the run again"):
        run_planned(load("study_config"), file, [])
    assert not planned.made
    write_job(plan, planned, [])
    assert settings.read_text(encoding="utf-8") == text


def test_a_record_has_what_a_job_was_made_from_and_its_files():
    plan = small_plan()
    finish(plan)
    planned = plan.find(*ROUND)
    made = read_made(planned.entry)
    job = job_of(plan, planned)
    same = ("stage", "settings", "code", "job", "inputs", "user_files", "key")
    assert {name: made[name] for name in same} == {name: job[name] for name in same}
    assert set(made["files"]) == set(job["outputs"])
    for name, digest in made["files"].items():
        assert sha256(planned.entry / name) == digest
    assert {"finished", "seconds", "host", "processor", "revision"} <= made.keys()


def test_processes_that_share_a_job_leave_its_record_to_the_one_that_started_them(monkeypatch):
    plan = small_plan()
    planned = plan.find("study_config")
    file = write_job(plan, planned, ["--out", f"{planned.folder}/config.yaml"])
    step = planned.entry / "unfinished/step"
    step.mkdir(parents=True)
    monkeypatch.setattr(run_stage, "runs_a_model", lambda stage: True)
    # Set by torch's launcher; RANK alone may also be set by a cluster.
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    run_planned(load("study_config"), file, [])
    assert step.is_dir() and not planned.made
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    monkeypatch.setenv("RANK", "1")
    run_planned(load("study_config"), file, [])
    assert planned.made and not step.exists()


@pytest.mark.parametrize("content", ["{", "3", "[{}]", '{"stage": "sft"}', '[{"stage": "x"}]'])
def test_a_damaged_record_or_plan_is_named_with_the_remedy(content):
    folder = STORE / "0123456789abcdef"
    folder.mkdir(parents=True)
    for name, read, remedy in (
        (MADE, read_made, f"delete {folder} to run the job again"),
        ("plan.json", entry.read_plan, "delete it and run the study again"),
    ):
        (folder / name).write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match=rf"^{folder / name}: the file is damaged.*; {remedy}$"):
            read(folder)


def test_an_input_that_was_edited_after_its_job_is_refused_and_one_without_record_is_not():
    plan = finished_study()
    sft, later = plan.find("sft"), plan.find(*ROUND)
    job = job_of(plan, later)
    file = sft.entry / "sft/adapter/model.safetensors"
    file.write_bytes(b"edited")
    with pytest.raises(
        UserError, match=rf"^{file}: the file has changed .*; delete {sft.entry} to run"
    ):
        take_equal(job, later.entry)
    with pytest.raises(UserError, match=f"^{file}: the file has changed"):
        record(job, later.entry, 0.0)
    (sft.entry / MADE).unlink()
    assert not take_equal(job, later.entry)


def test_a_job_without_an_output_has_no_record():
    plan = small_plan()
    planned = plan.find("assets")
    job = job_of(plan, planned)
    write_outputs(planned)
    Path(flat(planned.outputs)[0]).unlink()
    with pytest.raises(FileNotFoundError):
        record(job, planned.entry, 0.0)
    assert not planned.made


# An edit of this setting of the tasks changes the keys of all that follows, and no file of these
# tests.
EDIT = {"env.kinds": "19"}


def after_an_edit(text: str = ""):
    """The plan after an edit of the tasks, which have been made anew, and what it was before."""
    before, plan = finished_study(), small_plan(**EDIT)
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base")], text)
    return before, plan


def test_a_job_whose_inputs_have_the_same_contents_copies_its_results(capsys):
    before, plan = after_an_edit()
    old, new = before.find("sft"), plan.find("sft")
    assert old.key != new.key
    assert take_equal(job_of(plan, new), new.entry)
    assert capsys.readouterr().out == (
        f"copied from {old.entry}, a finished job with the same inputs\n"
    )
    assert files_of(new) == files_of(old)
    made = read_made(new.entry)
    assert made["taken_from"] == old.key and new.made
    assert made["seconds"] == read_made(old.entry)["seconds"]
    # Copies, not links; and what was copied can be copied again.
    assert all(Path(path).stat().st_nlink == 1 for path in flat(new.outputs))


def test_a_job_whose_inputs_have_other_contents_copies_nothing():
    _, plan = after_an_edit("other tasks")
    planned = plan.find("sft")
    assert not take_equal(job_of(plan, planned), planned.entry)
    assert not planned.made


def test_a_damaged_source_is_named_and_one_that_lost_a_file_is_not_taken(capsys):
    before, plan = after_an_edit()
    old, new = before.find("sft"), plan.find("sft")
    path = Path(flat(old.outputs)[0])
    path.write_bytes(b"edited")
    assert not take_equal(job_of(plan, new), new.entry)
    message = (
        f"not copied from {old.entry}: {path.relative_to(old.entry)} has changed since its job"
    )
    assert message in capsys.readouterr().out
    path.unlink()
    assert not take_equal(job_of(plan, new), new.entry)
    assert not new.made


def targets(root: str) -> dict[str, str]:
    """Path below results/<study> -> where its link leads."""
    return {
        str(path.relative_to(root)): os.readlink(path)
        for path in Path(root).rglob("*")
        if path.is_symlink()
    }


def test_links_are_relative_and_lead_to_every_result(here):
    plan = finished_study()
    links = targets(plan.root)
    assert links[PLACE] == f"../../../../store/{plan.find(*ROUND).key}/{PLACE}"
    assert links["sft"] == f"../store/{plan.find('sft').key}/sft"
    # Three stages write into one folder, and one writes beside all folders.
    merge, figures = plan.find("merge").key, plan.find("figures").key
    assert links["report/episodes.parquet"] == f"../../store/{merge}/report/episodes.parquet"
    assert links["report/figures"] == f"../../store/{figures}/report/figures"
    assert {"config.yaml", "report/report.html", "report/tables"} <= set(links)
    assert all(Path(plan.root, name).exists() for name in links)
    # They still lead there if the folder is moved.
    here.rename(here.with_name("moved"))
    assert all((here.with_name("moved") / plan.root / name).exists() for name in links)


def test_links_follow_the_newest_run_and_are_removed_before_a_job_runs():
    before, plan = finished_study(), small_plan(**{"methods.Progressive.alpha": "0.25"})
    old, new = before.find(*ROUND), plan.find(*ROUND)
    root = Path(plan.root)
    # Links to other results than those of the plan are removed when its jobs are to run.
    unlink(root, [plan.find("sft")], older=True)
    assert (root / "sft").is_symlink()
    unlink(root, [new], older=True)
    assert not (root / PLACE).is_symlink() and old.made
    finish(plan)
    for _ in range(2):
        link(root, [read_made(new.entry)])
        assert (root / PLACE).resolve() == (new.entry / PLACE).resolve()
    link(root, [read_made(old.entry)])
    assert (root / PLACE).resolve() == (old.entry / PLACE).resolve()
    unlink(root, [old])
    assert not (root / PLACE).exists()


def test_a_finished_job_is_linked_if_the_newest_run_includes_it_or_if_it_ran_on_request():
    before, plan = finished_study(), finished_study(**{"methods.Progressive.alpha": "0.25"})
    write_plan(plan)
    links, viewer = targets(plan.root), plan.find("viewer")
    # A run that started before the edit ends after the newer one.
    link_planned(job_of(before, before.find(*ROUND)))
    assert targets(plan.root) == links
    finish(plan, [viewer])
    link_planned(job_of(plan, viewer))
    added = dict(targets(plan.root).items() - links.items())
    assert added and all(f"/store/{viewer.key}/" in place for place in added.values())
    (Path(plan.root) / PLACE).unlink()
    link_planned(job_of(plan, plan.find(*ROUND)))
    assert targets(plan.root)[PLACE] == links[PLACE]


@pytest.mark.parametrize("name", ["sft", "config.yaml"])
def test_results_of_an_earlier_version_are_not_replaced(name):
    plan = small_plan()
    place = Path(plan.root, name)
    place.parent.mkdir(parents=True)
    if "." not in name:
        place.mkdir()
    (place if "." in name else place / "old").write_text("old", encoding="utf-8")
    message = f"^{place}: written by an earlier version of hgrpo.* move it or"
    # Before a job runs, and when it has ended.
    with pytest.raises(UserError, match=message):
        unlink(Path(plan.root), plan.jobs())
    finish(plan)
    with pytest.raises(UserError, match=message):
        link(Path(plan.root), (read_made(planned.entry) for planned in plan.jobs()))
    assert place.exists() and not place.is_symlink()


def test_results_of_two_sft_policies_are_not_compared():
    plan = small_plan()
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base", "sft")])
    first = [plan.find("rl_round", "flatGRPO", 11, number) for number in (1, 2)]
    evaluations = [each for each in plan.jobs() if each.stage == "evaluate"]
    old = [each for each in evaluations if each.job.method == "flatGRPO"]
    finish(plan, [*first, *old])
    # Another processor makes other weights, after the rounds of the first arm were removed.
    for each in (plan.find("sft"), *first):
        shutil.rmtree(each.entry)
    finish(plan, [plan.find("sft")], "other weights")
    rounds = [each for each in plan.jobs() if each.stage in ("rl_round", "credit_fit")]
    finish(plan, [each for each in rounds if each not in first])
    finish(plan, [each for each in evaluations if each not in old])
    path = plan.find("rl_round", "flatGRPO", 11, 1).inputs["sft_architecture"]
    message = f"^{path}: the job's inputs were made from different versions of this file; "
    with pytest.raises(UserError, match=message) as refused:
        finish(plan, [plan.find("merge")])
    assert str(refused.value).endswith(": " + ", ".join(sorted(each.key for each in old)))
    for each in old:
        shutil.rmtree(each.entry)
    finish(plan, [*first, *old, plan.find("merge")])
    assert plan.find("merge").made
