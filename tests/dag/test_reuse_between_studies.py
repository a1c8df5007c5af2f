"""Two studies with equal stages, on real rules and real commands: the second one takes them."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

SMALL = {"env": "alfworld-smoke", "model": "tiny", "methods": ["flatGRPO"], "seeds": [11]}
EVALUATION = {"test_games": 16, "validation_games": 8}
STAGES = ("assets", "expert")


@pytest.fixture(scope="module")
def made(finished, tmp_path_factory):
    """A checkout whose jobs run real commands, with games and expert of the study `small`."""
    checkout = copy(finished, tmp_path_factory.mktemp("made") / "checkout")
    with (checkout.root / "Snakefile").open("a", encoding="utf-8") as handle:
        handle.write('\nshell.prefix(f"export PATH={BIN}:$PATH; ")\n')
    add_study(checkout, "small")
    done = run(checkout, "small")
    assert taken(checkout, "small") == {}, done.stderr
    return checkout


@pytest.fixture
def real(made, tmp_path):
    """A copy of `made`, free to be edited."""
    return copy(made, tmp_path / "checkout")


def copy(checkout, root: Path):
    shutil.copytree(checkout.root, root, symlinks=True)
    return type(checkout)(root, checkout.forks)


def add_study(checkout, name: str, **changes) -> None:
    study = SMALL | {"name": name, "evaluation": EVALUATION} | changes
    (checkout.root / f"configs/studies/{name}.yaml").write_text(
        yaml.safe_dump(study), encoding="utf-8"
    )


def run(checkout, name: str, *options: str):
    done = checkout.snakemake(f"results/{name}/expert/summary.json", f"study={name}", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def taken(checkout, name: str) -> dict[str, str]:
    """Stage -> the folder that its log says it was taken from."""
    logs = {stage: checkout.root / f"results/{name}/logs/{stage}/{stage}.log" for stage in STAGES}
    found = {
        stage: re.findall("^taken from (.*?),", log.read_text(encoding="utf-8"))
        for stage, log in logs.items()
    }
    return {stage: folders[0] for stage, folders in found.items() if folders}


def results(checkout, name: str) -> dict[str, bytes]:
    root = checkout.root / "results" / name
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for stage in STAGES
        for path in (root / stage).iterdir()
        if path.is_file() and not path.name.startswith(".")
    }


def test_a_study_with_another_arm_takes_what_is_equal(real):
    before = {path: path.stat().st_mtime_ns for path in (real.root / "results/small").rglob("*")}
    add_study(real, "twin", methods=["flatGRPO", "Progressive"])
    run(real, "twin")
    assert taken(real, "twin") == {stage: f"results/small/{stage}" for stage in STAGES}
    assert results(real, "twin") == results(real, "small")
    record = json.loads((real.root / "results/twin/assets/.finished.json").read_bytes())
    assert record["taken_from"] == "results/small/assets"
    # The first study is as it was, and neither has anything left to do.
    assert before == {path: path.stat().st_mtime_ns for path in before}
    for name in ("small", "twin"):
        assert "Nothing to be done" in run(real, name).stderr


def test_a_changed_setting_is_not_shared_and_what_comes_before_it_is(real):
    env = yaml.safe_load((real.root / "configs/envs/alfworld-smoke.yaml").read_bytes())
    env["expert"]["trajectories"] -= 1
    (real.root / "configs/envs/fewer.yaml").write_text(yaml.safe_dump(env), encoding="utf-8")
    add_study(real, "fewer", env="fewer")
    run(real, "fewer")
    assert taken(real, "fewer") == {"assets": "results/small/assets"}
    assert (
        results(real, "fewer")["expert/trajectories.parquet"]
        != (results(real, "small")["expert/trajectories.parquet"])
    )


def test_damaged_results_are_made_anew(real):
    path = real.root / "results/small/assets/panels.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"train", b"trein", 1))
    add_study(real, "twin")
    run(real, "twin")
    # The games come out the same, so the expert's trajectories are equal again.
    assert taken(real, "twin") == {"expert": "results/small/expert"}
    log = (real.root / "results/twin/logs/assets/assets.log").read_text(encoding="utf-8")
    assert "not taken from results/small/assets: panels.json is not what the job wrote" in log
    assert results(real, "twin")["assets/panels.json"] == whole


def test_turned_off_every_job_runs(real):
    add_study(real, "twin")
    run(real, "twin", "reuse=no")
    assert taken(real, "twin") == {}
    # The switch is no setting of a job: turning it on again runs nothing.
    assert "Nothing to be done" in run(real, "twin", "reuse=yes").stderr


def test_a_switch_that_is_neither_yes_nor_no_is_refused(checkout):
    done = checkout.snakemake("-n", "reuse=maybe")
    assert done.returncode != 0
    assert "error: command line: reuse: yes or no was expected, not 'maybe'" in done.stderr
