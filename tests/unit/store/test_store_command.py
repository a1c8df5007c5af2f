"""`python -m hgrpo.cli.store`: what it prints, and what it removes."""

import io
import re
import shutil
import sys
from pathlib import Path

import pytest
from places import PROJECT
from stored_study import finish, finished_study, keys, small_plan

from hgrpo.cli import store
from hgrpo.cli.run_stage import run_planned
from hgrpo.errors import UserError
from hgrpo.stages.order import load
from hgrpo.store.entry import link, read_made, write_job
from hgrpo.store.lock import locked
from hgrpo.store.plan import MADE, STORE, flat

WORDS = ("study=smoke", "methods=SFTOnly,flatGRPO,Progressive", "truth=null")
EDIT = {"methods.Progressive.alpha": "0.25"}


@pytest.fixture
def command(monkeypatch, capsys, here):
    """A function that runs the command in this process and returns its lines."""
    (here / "configs").symlink_to(PROJECT / "configs")

    def run(*words: object) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["store", *map(str, words)])
        store.main()
        return capsys.readouterr().out.splitlines()

    return run


def test_the_list_has_a_line_for_every_result(command):
    assert len(command("list")) == 2
    plan = finished_study()
    _, _, *lines = command("list")
    assert {line.split()[0] for line in lines} == set(keys(plan).values())
    (line,) = (line for line in lines if line.startswith(plan.find("sft").key))
    assert line.split()[1] == "sft" and line.split()[-1] == "smoke"
    key = plan.find("rl_round", "Progressive", 11, 2).key
    (line,) = (line for line in lines if line.startswith(key))
    assert " Progressive seed 11 round 2 " in line


def test_a_result_is_explained_by_its_key_and_by_every_path_that_leads_to_it(command):
    plan = finished_study()
    planned = plan.find("rl_round", "Progressive", 11, 2)
    place = f"{plan.root}/rl/Progressive/seed_11/round_2"
    text = command("show", planned.key)
    for path in (place, f"{place}/turns.parquet", planned.entry):
        assert command("show", path) == text
    rows = [line.split(maxsplit=1) for line in text]
    assert ["stage", "rl_round"] in rows and ["method", "Progressive"] in rows
    sources = {row[1] for row in rows if row[0] == "made"}
    first = plan.find("rl_round", "Progressive", 11, 1)
    assert {f"from  {first.key} {first.name}", f"from  {plan.find('sft').key} sft"} <= sources
    assert ["link", place] in rows
    assert ["used", "by    evaluate Progressive seed 11"] in rows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("0123456789abcdef", "0123456789abcdef: this prefix matches no result"),
        ("configs", "configs: not the result of one job"),
        (
            "results/smoke/rl/Progresive/seed_11",
            ": no Progresive in results/smoke/rl.*'Progressive'",
        ),
        (
            "results/smoke/sft",
            "results/smoke/sft: links to results/store/.*, which contains no result",
        ),
    ],
)
def test_what_is_no_result_is_named(command, name, message):
    shutil.rmtree(finished_study().find("sft").entry)
    with pytest.raises(UserError, match=message):
        command("show", name)


def test_the_reasons_of_jobs_that_would_run(command):
    assert all(line.endswith("never ran") for line in command("why", *WORDS)[2:])
    finished_study()
    assert command("why", *WORDS) == ["nothing to run: all results exist"]
    text = "\n".join(command("why", *WORDS, "methods.Progressive.alpha=0.25"))
    assert re.search(r"Progressive seed 11 round 1 .*: method\.alpha 0\.\d+ -> 0\.25", text)
    assert re.search(r"Progressive seed 11 round 2 .*inputs from rl", text)
    assert "flatGRPO" not in text and re.search(r"^merge .*inputs from eval$", text, re.MULTILINE)
    shutil.rmtree("results/smoke")
    text = "\n".join(command("why", *WORDS, "methods.Progressive.alpha=0.25"))
    assert re.search(r"Progressive seed 11 round 1 .*: method\.alpha 0\.\d+ -> 0\.25", text)
    # Another study that never ran is not compared with this one.
    assert re.search("^sft +never ran$", "\n".join(command("why", "study=bakeoff")), re.MULTILINE)


def test_a_new_arm_is_one_word_of_the_reason(command):
    finished_study()
    text = command("why", WORDS[0], f"{WORDS[1]},GiGPO", WORDS[2])
    (line,) = (line for line in text if line.startswith("report "))
    assert "methods.GiGPO added, order.GiGPO added" in line and len(line) < 200


def test_the_reasons_of_a_job_that_ran(command):
    before = finished_study()
    place = f"{before.root}/rl/Progressive/seed_11/round_2"
    assert "this job has no older result" in command("why", place)[0]
    after = finished_study(**EDIT)
    keys_of_round = [plan.find("rl_round", "Progressive", 11, 2).key for plan in (before, after)]
    for words in ([place], [keys_of_round[1][:12]], keys_of_round):
        text = "\n".join(command("why", *words))
        assert re.search(rf"round 2 +{' +'.join(keys_of_round)} +settings: method\.alpha", text)
        # The first round ran for a reason of its own.
        assert re.search(r"Progressive seed 11 round 1 .* settings: method\.alpha", text)
        assert "sft" not in text


def test_a_result_without_files_is_named_with_the_command_that_makes_it(command, tmp_path):
    planned = finished_study().find("evaluate", "Progressive", 11, 2)
    archive = tmp_path / "share.tar"
    command("export", *WORDS, "--out", archive)
    for path in map(Path, flat(planned.outputs)):
        path.unlink()
    target = "results/smoke/eval/Progressive/seed_11/round_2/episodes.parquet"
    make = f"snakemake {target} --config {' '.join(WORDS)}"
    assert command("why", *WORDS)[-1].endswith(make)
    with pytest.raises(UserError, match=f"{planned.name}: .*{re.escape(make)}$"):
        command("export", *WORDS, "--out", tmp_path / "again.tar")
    assert ": 1 jobs imported, " in command("import", archive)[0] and planned.whole
    # A run makes a report without files.
    Path("results/smoke/report/report.html").resolve().unlink()
    assert re.fullmatch("report +its files are gone", command("why", *WORDS)[-1])


def test_an_edited_module_is_a_reason(command, monkeypatch):
    from hgrpo.store import code

    finished_study()
    read = code._read

    def edited(name, path, package):
        digest, imports = read(name, path, package)
        return (f"edited {digest}" if name == "hgrpo.credit.progress" else digest), imports

    monkeypatch.setattr(code, "_read", edited)
    text = "\n".join(command("why", *WORDS))
    assert re.search(r"Progressive seed 11 round 1 .*code: hgrpo\.credit\.progress", text)
    assert "flatGRPO" not in text


def test_what_no_folder_of_results_leads_to_is_removed_after_a_question(command, monkeypatch):
    before = finished_study()
    assert command("gc") == ["nothing to remove"]
    plan = small_plan(**EDIT)
    finish(plan)
    link(Path(plan.root), (read_made(planned.entry) for planned in plan.jobs()))
    unnamed = set(keys(before).values()) - set(keys(plan).values())
    assert before.find("rl_round", "Progressive", 11, 1).key in unnamed
    for answer in ("", "n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        with pytest.raises(SystemExit, match="nothing was removed"):
            command("gc")
        assert all((STORE / key).is_dir() for key in unnamed)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    *arms, line, _ = command("gc")
    assert ["rl_round", "Progressive", "11", "2"] in [arm.split()[:4] for arm in arms]
    assert line.startswith(f"{len(unnamed)} results, ")
    assert not any((STORE / key).exists() for key in unnamed)
    assert all(planned.made for planned in plan.jobs())
    assert command("gc", "--yes") == ["nothing to remove"]


def test_gc_and_import_run_alone_and_gc_removes_the_remains_of_killed_commands(command, tmp_path):
    plan = finished_study()
    command("export", *WORDS, "--out", tmp_path / "share.tar")
    # Two runs share the lock. The end of one of them protects the other.
    with locked():
        with locked():
            pass
        for words in (("gc", "--yes"), ("import", tmp_path / "share.tar")):
            with pytest.raises(UserError, match="a run or one of its jobs is active"):
                command(*words)
    planned = plan.find("evaluate", "Progressive", 11, 2)
    file = write_job(plan, planned, [])
    with (
        locked(alone=True),
        pytest.raises(UserError, match="`store gc` or `store import` is active"),
    ):
        run_planned(load("evaluate"), file, [])
    half = STORE / ".removed-0123456789abcdef"
    half.mkdir()
    assert command("gc") == ["nothing to remove"] and not half.exists()


@pytest.mark.parametrize("path", ["elsewhere/sft/summary.json", "results/../x/sft/summary.json"])
def test_a_link_is_made_only_below_the_results(command, tmp_path, path):
    plan = finished_study()
    for place in (path, tmp_path / path):
        with pytest.raises(UserError, match="expected a path below results/<study>"):
            command("link", place, plan.find("sft").outputs["summary"])
    assert not Path("elsewhere").exists() and not Path("x").exists()


def test_two_archives_of_one_name_are_both_kept(command, tmp_path):
    plan = finished_study()
    links = set()
    for method in ("flatGRPO", "Progressive"):
        command("export", WORDS[0], f"methods={method}", *WORDS[2:], "--out", tmp_path / "arms.tar")
        command("import", tmp_path / "arms.tar")
        links |= set(Path("results/imported").iterdir())
        (tmp_path / "arms.tar").unlink()
    assert len(links) == 2
    shutil.rmtree(plan.root)
    command("gc", "--yes")
    for method in ("flatGRPO", "Progressive"):
        assert plan.find("evaluate", method, 11, 2).whole


def test_a_result_without_its_record_is_named_with_the_command_that_makes_it(command, tmp_path):
    plan = finished_study()
    planned = plan.find("evaluate", "Progressive", 11, 2)
    (planned.entry / MADE).unlink()
    make = f"rm -r {planned.entry} && snakemake results/smoke/eval/"
    assert make in command("why", *WORDS)[-1]
    with pytest.raises(UserError, match=make):
        command("export", *WORDS, "--out", tmp_path / "share.tar")


def test_only_jobs_whose_missing_files_are_read_run_again(here):
    plan = finished_study()
    turns, read = plan.find("rl_round", "Progressive", 11, 1), plan.find("report")
    path = next(path for path in flat(turns.outputs) if path not in flat(read.inputs))
    Path(path).unlink()
    Path(read.outputs["page"]).unlink()
    assert [each.stage for each in plan.to_run()] == ["report"]


def test_an_archive_from_one_folder_to_another(command, tmp_path, monkeypatch):
    plan = finished_study()
    archive = tmp_path / "share.tar"
    words = ("study=smoke", "methods=Progressive", "seeds=11", "truth=null", "reference=null")
    (line,) = command("export", *words[:3], "--out", archive)
    assert line.startswith(f"{archive}: ") and "Progressive" in line
    with pytest.raises(UserError, match=f"^{archive}: expected a new file"):
        command("export", *words[:3], "--out", archive)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    (line,) = command("import", archive)
    assert re.match(rf"{archive}: \d+ jobs imported, 0 already existed", line)
    assert command("gc") == ["nothing to remove"]
    planned = plan.find("rl_round", "Progressive", 11, 2)
    assert planned.made and all(Path(path).is_file() for path in flat(planned.outputs))
    (line,) = command("import", archive)
    assert re.match(rf"{archive}: 0 jobs imported, \d+ already existed", line)
    shutil.rmtree("results/imported")
    command("gc", "--yes")
    assert not planned.made


def test_what_a_named_result_was_made_from_is_kept(command):
    plan = finished_study()
    root = Path(plan.root)
    for path in (root / "sft", root / "base", root / "assets", root / "report/report.html"):
        path.unlink()
    command("gc", "--yes")
    assert all(plan.find(stage).made for stage in ("assets", "base", "sft"))
    assert not plan.find("report").made or (root / "report/tables").is_symlink()
