"""Jobs that an edit reruns, end to end; tests/unit/store/test_store_plan.py has the edits."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

TRAINED = ("flatGRPO", "Progressive")
SEEDS = (11, 23)
ROUNDS = (1, 2)
CONFIG = {"Resolved configuration of the study"}
REPORT = {"Tables and the report"}
DRAWN = {"Figures"} | REPORT
MERGED = {"Merge the episodes of all arms"} | DRAWN
SFT_EVALUATIONS = {"SFTOnly, seed 0: evaluation of round 0"}
SFT = {"Supervised fine-tuning"} | SFT_EVALUATIONS
DATA = {"Games and panels", "Expert trajectories", "Base model"}


def rounds(methods=TRAINED, seeds=SEEDS, numbers=ROUNDS) -> set[str]:
    return {
        f"{method}, seed {seed}: round {number}"
        for method in methods
        for seed in seeds
        for number in numbers
    }


def evaluations(methods=TRAINED, seeds=SEEDS, numbers=ROUNDS) -> set[str]:
    trained_rounds = rounds(methods, seeds, numbers)
    return {job.replace(": round", ": evaluation of round") for job in trained_rounds}


def trained(**selection) -> set[str]:
    return rounds(**selection) | evaluations(**selection)


def run(checkout, *words: str) -> None:
    done = checkout.snakemake(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def append(checkout, name: str, text: str) -> None:
    with (checkout.root / name).open("a", encoding="utf-8") as handle:
        handle.write(text)


def test_an_empty_checkout_plans_every_job(checkout):
    shutil.rmtree(checkout.root / "results")
    assert checkout.planned() == CONFIG | DATA | SFT | trained() | MERGED


def test_times_comments_and_lost_metadata_rerun_nothing(checkout):
    assert checkout.planned() == set()
    for part in ("Snakefile", "rules", "configs", "hgrpo", "results/store"):
        path = checkout.root / part
        for file in path.rglob("*") if path.is_dir() else [path]:
            os.utime(file)
    append(checkout, "hgrpo/learning/update.py", "\n# A remark.\n")
    shutil.rmtree(checkout.root / ".snakemake")
    assert checkout.planned() == set()


def test_an_edited_assigner_trains_its_arm_and_an_undone_edit_trains_nothing(checkout):
    before = checkout.links()
    place = "rl/Progressive/seed_11/round_2"
    checkout.edit("hgrpo/credit/progress.py", "import numpy", "import os\nimport numpy")
    assert checkout.planned() == trained(methods=["Progressive"]) | MERGED
    run(checkout)
    assert checkout.planned() == set()
    after = checkout.links()
    assert after.keys() == before.keys()
    assert {name for name in after if "flatGRPO" in name and after[name] != before[name]} == set()
    assert after[place] != before[place]
    # Both results are there.
    checkout.edit("hgrpo/credit/progress.py", "import os\nimport numpy", "import numpy")
    assert checkout.planned() == set()
    run(checkout)
    assert checkout.links() == before
    assert (checkout.root / f"results/store/{after[place]}/made.json").is_file()


def test_an_edited_method_trains_its_arm(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    assert checkout.planned() == CONFIG | trained(methods=["Progressive"]) | MERGED


def test_fewer_rounds_make_another_report_and_more_bring_the_longer_one_back(checkout):
    before = checkout.links()
    assert checkout.planned("rounds=1") == CONFIG | MERGED
    run(checkout, "rounds=1")
    page = "report/report.html"
    assert checkout.links()[page] != before[page]
    assert checkout.planned() == set()
    run(checkout)
    assert checkout.links() == before
    assert checkout.planned("rounds=3") == CONFIG | trained(numbers=[3]) | MERGED
    assert checkout.planned("seeds=11,31") == CONFIG | trained(seeds=[31]) | MERGED


def test_a_study_with_equal_arms_takes_them_from_the_store(checkout):
    study = (checkout.root / "configs/studies/grid.yaml").read_text(encoding="utf-8")
    twin = study.replace("name: grid", "name: twin").replace("- flatGRPO", "- RandomCredit")
    (checkout.root / "configs/studies/twin.yaml").write_text(twin, encoding="utf-8")
    words = ("study=twin", "set=reference=Progressive")
    assert checkout.planned(*words) == CONFIG | trained(methods=["RandomCredit"]) | MERGED
    run(checkout, *words)
    assert checkout.links("twin")["sft"] == checkout.links()["sft"]
    assert checkout.planned() == checkout.planned(*words) == set()


def test_lost_files_are_made_again_where_a_target_needs_them(checkout):
    report = checkout.root / "results/grid/report"
    next((report / "figures").glob("*.svg")).unlink()
    # The page has its figures in it.
    assert checkout.planned() == set()
    assert checkout.planned("figures") == {"Figures"}
    (report / "tables/cost.csv").unlink()
    assert checkout.planned() == DRAWN
    key = checkout.links()["rl/Progressive/seed_11/round_1"]
    shutil.rmtree(checkout.root / f"results/store/{key}")
    one = {"methods": ["Progressive"], "seeds": [11], "numbers": [1]}
    target = "results/grid/rl/Progressive/seed_11/round_1/summary.json"
    assert (
        rounds(**one)
        <= checkout.planned(target)
        <= rounds(**one) | {"rl/Progressive/seed_11/round_1/summary.json"}
    )


def test_a_lost_file_of_a_finished_study_comes_back_by_its_path(checkout):
    target = "results/grid/rl/flatGRPO/seed_11/round_1/adapter/model.safetensors"
    before, path = checkout.links(), checkout.root / target
    whole = path.read_bytes()
    path.unlink()
    assert checkout.planned() == set()
    run(checkout, target)
    assert path.read_bytes() == whole
    assert checkout.links() == before
    assert checkout.planned() == set()


@pytest.fixture
def real(checkout):
    """A checkout whose jobs run the project's own commands on few games, with no results yet."""
    checkout.take_real_commands()
    shutil.rmtree(checkout.root / "results")
    checkout.edit("configs/studies/grid.yaml", "alfworld-laptop", "alfworld-smoke")
    append(
        checkout,
        "configs/studies/grid.yaml",
        "evaluation: {test_games: 16, validation_games: 8}\n",
    )
    return checkout


def logged(checkout, stage: str) -> str:
    (log,) = (checkout.root / f"results/store/{checkout.links()[stage]}").glob("*.log")
    return log.read_text(encoding="utf-8")


def test_jobs_copy_their_results_if_an_edit_changed_no_content(real):
    target = "results/grid/expert/summary.json"
    run(real, target)
    before = real.links()
    append(real, "hgrpo/stages/assets.py", "\nFLOOR = 1e-6\n")
    assert {"Games and panels", "Expert trajectories"} <= real.planned(target)
    run(real, target)
    after = real.links()
    assert all(after[stage] != before[stage] for stage in ("assets", "expert"))
    assert "copied from" not in logged(real, "assets")
    assert f"copied from results/store/{before['expert']}, a" in logged(real, "expert")
    for name in ("trajectories.parquet", "summary.json"):
        old, new = (real.root / f"results/store/{at['expert']}/expert" for at in (before, after))
        assert (old / name).read_bytes() == (new / name).read_bytes()


PANELS = "hgrpo/games/panels.py"
IN_THE_SNAKEFILE = f"""
if workflow.is_main_process:
    with open("{PANELS}", "a") as file:
        file.write("MORE = 1\\n")
"""
IN_THE_JOB = f'''
def run(*given):
    """Edit a module that this one has imported, as somebody may do meanwhile."""
    with open("{PANELS}", "a") as file:
        file.write("MORE = 1\\n")
    _run(*given)


def _run('''


@pytest.mark.parametrize("edited", ["after the plan", "while the job runs"])
def test_a_job_never_mixes_code(real, edited):
    if edited == "after the plan":
        append(real, "Snakefile", IN_THE_SNAKEFILE)
    else:
        real.edit("hgrpo/stages/assets.py", "\ndef run(", IN_THE_JOB)
    done = real.snakemake("assets")
    assert done.returncode != 0
    message = "the code of this job has changed since the run was planned; undo the edit or run "
    assert message in done.stdout + done.stderr and "Traceback" not in done.stdout + done.stderr
    assert list(real.root.glob("results/store/*/made.json")) == []
    assert list(real.root.glob("results/store/*/assets/panels.json")) == []


# Stands for a job that goes on until it is killed.
HANGS = """#!{python} -IS
import pathlib, time
pathlib.Path("begun").touch()
time.sleep(60)
"""
# Added to the stub: the job's files are complete, and its process goes on.
LINGERS = """
Path("begun").touch()
__import__("time").sleep(60)
"""


def kill_when_begun(checkout, sent: signal.Signals, *words: str) -> None:
    """Start a run and send a signal to all its processes once a job has made the file `begun`."""
    with subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--config", "study=grid", *words],
        cwd=checkout.root,
        env=os.environ | {"PYTHONPATH": str(checkout.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while not (checkout.root / "begun").exists() and process.poll() is None:
            time.sleep(0.1)
        os.killpg(process.pid, sent)
    assert process.returncode != 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_ended_goes_on_from_there(checkout, sent):
    root = checkout.root
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    stub = root / "stub/python"
    whole = stub.read_bytes()
    stub.write_text(HANGS.format(python=sys.executable), encoding="utf-8")
    kill_when_begun(checkout, sent)
    stub.write_bytes(whole)
    if sent is signal.SIGKILL:
        assert checkout.snakemake("--unlock").returncode == 0
    assert checkout.planned() == CONFIG | trained(methods=["Progressive"]) | MERGED
    run(checkout)
    assert checkout.planned() == set()
    made = root / f"results/store/{checkout.links()['rl/Progressive/seed_11/round_1']}/made.json"
    assert json.loads(made.read_bytes())["stage"] == "rl_round"


def test_a_run_looks_for_results_only_while_gc_and_import_are_locked_out(checkout):
    with (checkout.root / "results/store/.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = checkout.snakemake("-n")
    assert done.returncode != 0 and "Building DAG" not in done.stderr
    assert "error: results/store: `store gc` or `store import` is active" in done.stderr


def test_make_unlock_keeps_jobs_that_finished_although_their_run_was_killed(checkout):
    checkout.add_environment()
    append(checkout, "hgrpo/stages/assets.py", "\nADDED = 1\n")
    append(checkout, "stub/python", LINGERS)
    kill_when_begun(checkout, signal.SIGKILL, "--cores=1")
    assert checkout.snakemake("--unlock").returncode == 0
    games = "Games and panels"
    assert games in checkout.planned()
    unlock = ["make", "unlock", "STUDY=grid"]
    env = os.environ | {"PYTHONPATH": str(checkout.root)}
    subprocess.run(unlock, cwd=checkout.root, env=env, capture_output=True, check=True)
    assert games not in checkout.planned()
