"""The training stages as their command lines run them."""

import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file
from small_study import TRAINING, environment, make_study

from hgrpo.archive import pack, unpacked
from hgrpo.base_model.folder import open_base
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.learning.scratch import job_scratch
from hgrpo.policy.compatible import weights_digest
from hgrpo.policy.load import load_policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.trajectories.store import SEQUENCES, TURNS

TIMINGS = {"collect_s", "credit_s", "update_s", "elapsed_s", "total_elapsed_s", "s", "finished"}


@pytest.fixture(scope="module")
def study(project, forks, tmp_path_factory):
    return make_study(project, tmp_path_factory.mktemp("study"), forks)


@pytest.fixture(scope="module")
def played(study):
    """An uninterrupted round."""
    out = study.root / "round"
    done = study.run_alone("rl_round", **study.round_options(out))
    assert done.returncode == 0, done.stderr
    return out


def outputs(folder: Path) -> dict[str, object]:
    """Every file of a round, its times of the clock taken out."""
    contents: dict[str, object] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            contents[name] = untimed(json.loads(path.read_bytes()))
        else:
            contents[name] = path.read_bytes()
    return contents


def untimed(value: object) -> object:
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if k not in TIMINGS}
    return [untimed(v) for v in value] if isinstance(value, list) else value


def one_line_error(done: subprocess.CompletedProcess) -> str:
    """The error line of a command that failed as a command should."""
    assert done.returncode not in (0, 1)
    assert "Traceback" not in done.stderr
    lines = [
        line for line in done.stderr.splitlines() if line.startswith(("error:", "interrupted"))
    ]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_artefacts_of_a_round(played):
    trajectories = (
        TRAINING["steps_per_round"] * TRAINING["tasks_per_step"] * TRAINING["rollouts_per_task"]
    )
    turns = pq.read_table(played / "turns.parquet")
    sequences = pq.read_table(played / "sequences.parquet")
    assert turns.schema.equals(TURNS)
    assert sequences.schema.equals(SEQUENCES)
    assert sequences.num_rows == trajectories
    frame = sequences.to_pandas()
    for row in frame.itertuples():
        sampled = sum(end - start for start, end in row.spans)
        assert sampled == len(row.behaviour_logprobs)
    assert frame.groupby(["step", "task_id"])["content_hash"].nunique().max() == 1
    summary = json.loads((played / "summary.json").read_bytes())
    assert summary["total_trajectories"] == trajectories
    assert summary["total_turns"] == turns.num_rows
    assert summary["counts"]["inadmissible"] == sum(
        not ok for ok in turns["admissible"].to_pylist()
    )
    log = json.loads((played / "train_log.json").read_bytes())
    assert datetime.datetime.fromisoformat(log["finished"]).utcoffset() == datetime.timedelta(0)
    assert [row["step"] for row in log["rows"]] == list(range(TRAINING["steps_per_round"]))
    assert (log["config"]["seed"], log["config"]["round"]) == (11, 1)


def test_a_round_records_what_it_started_from(study, played):
    summary = json.loads((played / "summary.json").read_bytes())
    supervised = weights_digest(study.root / "sft/adapter")
    base = json.loads((study.root / "base/summary.json").read_bytes())["digest"]
    assert summary["parents"] == {"base": base, "sft": supervised, "policy": supervised}
    assert summary["policy"] == weights_digest(played / "adapter") != supervised
    assert len(summary["code"]) == len(summary["settings"]) == 16


def test_progress_credit_of_a_winning_trajectory_reaches_one(played):
    turns = pd.read_parquet(played / "turns.parquet")
    sums = turns.groupby(["step", "task_id", "rollout"])[["credit", "env_reward"]].sum()
    won = sums[sums["env_reward"] == 1]
    assert len(won), "a policy that imitates the expert wins some of 72 games"
    # Games start with some of their potential; winning takes it to 1.
    assert (won["credit"] > 0).all()
    assert (sums["credit"] <= 1 + 1e-9).all()


def test_weights_moved(study, played):
    before = load_file(study.root / "sft/adapter/model.safetensors")
    after = load_file(played / "adapter/model.safetensors")
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before)


@pytest.mark.parametrize("when", ["first step", "between", "while writing"])
def test_kill_9_and_rerun_is_byte_identical(study, played, tmp_path, when):
    out = tmp_path / "round"
    options = study.round_options(out)
    pattern = {"first step": "*/turns_00000.parquet", "between": "*/step_00001"}.get(when)
    if pattern:
        seen = partial(has_any, Path(options["scratch"]), pattern)
    else:
        seen = partial(has_any, tmp_path, ".round.tmp-*")
    kill_9_when(study.command("rl_round", **options), seen)
    assert not out.exists() or when == "while writing"
    shutil.rmtree(out, ignore_errors=True)
    done = study.run("rl_round", **options)
    assert done.returncode == 0, done.stderr
    assert outputs(out) == outputs(played)
    assert not any(tmp_path.glob(".round.tmp-*"))


def has_any(folder: Path, pattern: str) -> bool:
    return any(folder.glob(pattern))


def kill_9_when(words: list[str], seen: Callable[[], bool]) -> None:
    """Run a command until something is `seen`, or until it ends, and kill it."""
    process = subprocess.Popen(
        words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not seen():
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def test_kill_9_of_a_ppo_round_keeps_critic_and_stop_counter(study, tmp_path):
    # No deviation of returns reaches the floor. So the third step counts 1, and the fourth ends the
    # run, but only if the count of the third has survived.
    stops = {"reward_collapse": {"window": 2, "floor": 100.0, "solved_above": 1.0}}
    config = study.configs["rl_round"]
    config = config | {
        "method": {"name": "PPO", "advantage": "gae"},
        "training": config["training"] | {"steps_per_round": 4, "stops": stops},
    }
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = study.run("rl_round", **study.round_options(whole, config=config))
    assert done.returncode == 0, done.stderr
    ended = json.loads((whole / "summary.json").read_bytes())["ended"]
    assert (ended["status"], ended["rule"], ended["step"]) == ("stopped", "reward_collapse", 3)
    options = study.round_options(killed, config=config)
    kill_9_when(
        study.command("rl_round", **options),
        partial(has_any, Path(options["scratch"]), "*/step_00002"),
    )
    assert not killed.exists()
    done = study.run("rl_round", **options)
    assert done.returncode == 0, done.stderr
    assert outputs(killed) == outputs(whole)
    assert (killed / "critic.safetensors").stat().st_size > 10_000


# The command with a checkpoint at every step: by default one is kept every 30 s.
SFT_SAVING_EVERY_STEP = """
import sys
from hgrpo.cli.run_stage import run_stage
from hgrpo.command import run
from hgrpo.policy.compatible import weights_digest
from hgrpo.stages import sft
sft._SAVE_EVERY_S = 0.0
run(lambda: run_stage(sft, sys.argv[1:]))
"""


def test_kill_9_of_sft_and_rerun_is_byte_identical(study, tmp_path):
    sft = study.configs["sft"] | {"sft": study.configs["sft"]["sft"] | {"epochs": 0.2}}
    options = {"config": sft, "base": study.root / "base", "expert": study.root / "expert"}
    done = study.run("sft", **options, out=tmp_path / "whole")
    assert done.returncode == 0, done.stderr
    options |= {"scratch": tmp_path / "scratch", "out": tmp_path / "sft"}
    words = study.command("sft", **options)
    words[1:4] = ["-c", SFT_SAVING_EVERY_STEP]
    process = subprocess.Popen(
        words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not any((tmp_path / "scratch").glob("*/step_0000[2-9]")):
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "sft").exists()
    done = study.run("sft", **options)
    assert done.returncode == 0, done.stderr
    assert outputs(tmp_path / "sft") == outputs(tmp_path / "whole")
    assert not any((tmp_path / "scratch").glob("*/*"))


def test_two_processes_play_the_round_of_one(study, played, tmp_path):
    out = tmp_path / "round"
    done = study.run("rl_round", **study.round_options(out), processes=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Progressive seed 11 round 1") == 1
    assert outputs(out).keys() == outputs(played).keys()
    one, two = (pd.read_parquet(folder / "sequences.parquet") for folder in (played, out))
    first = one["step"] == 0
    assert first.any() and two["step"].equals(one["step"])
    for name in ("task_id", "rollout", "success"):
        assert two.loc[first, name].equals(one.loc[first, name])
    for mine, theirs in zip(one.loc[first, "token_ids"], two.loc[first, "token_ids"], strict=True):
        assert list(mine) == list(theirs)
    rows = [
        json.loads((folder / "train_log.json").read_bytes())["rows"][0] for folder in (played, out)
    ]
    for name in ("policy_loss", "grad_norm", "observed_kl", "mean_abs_turn_adv"):
        assert rows[1][name] == pytest.approx(rows[0][name], rel=1e-3, abs=1e-6), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mismatch_limit": 1e-12}, "step 1: training.mismatch_limit: 1e-12: "),
        ({"lr": 1e25, "warmup_steps": 0}, "step 1: the loss is not finite"),
        ({"lr": 1e25, "warmup_steps": 0, "minibatches": 1}, "step 2: "),
    ],
)
def test_training_that_cannot_go_on_is_one_line(study, tmp_path, change, message):
    out = tmp_path / "round"
    config = study.configs["rl_round"]
    config = config | {"training": config["training"] | change}
    options = study.round_options(out)
    line = one_line_error(study.run("rl_round", config=config, **options))
    assert message in line
    assert not out.exists()
    steps = list(Path(options["scratch"]).glob("*/step_*"))
    assert [path.name for path in steps] == (["step_00000"] if message == "step 2: " else [])
    assert (str(steps[0].parent) in line) if steps else "no checkpoint was written" in line


@pytest.mark.slow
def test_processes_fail_as_one_does(study, tmp_path):
    out = tmp_path / "round"
    config = study.configs["rl_round"]
    config = config | {"training": config["training"] | {"lr": 1e25, "warmup_steps": 0}}
    done = study.run("rl_round", config=config, **study.round_options(out), processes=2)
    assert done.returncode == 2, done.stderr
    assert "error: step 1: the loss is not finite" in done.stderr
    assert "Traceback" not in done.stderr
    assert "ChildFailedError" not in done.stderr
    assert not out.exists()


def test_ctrl_c_leaves_no_output_and_one_line(study, tmp_path):
    out = tmp_path / "round"
    options = study.round_options(out)
    process = subprocess.Popen(
        study.command("rl_round", **options),
        env=environment(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    while not any(Path(options["scratch"]).glob("*/turns_00000.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    done = subprocess.CompletedProcess([], process.returncode, "", errors)
    assert one_line_error(done).startswith("interrupted")
    assert not out.exists()
    assert not list(tmp_path.glob(".round.tmp-*"))


def test_full_disk_at_the_end_of_a_round(study, played, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        out = disk / "round"
        options = study.round_options(out, scratch=tmp_path / "scratch")
        assert "No space left" in one_line_error(study.run("rl_round", **options))
        assert list(disk.iterdir()) == []
        # With space again, the round resumes after its finished steps.
        roomy = options | {"out": tmp_path / "round"}
        assert study.run("rl_round", **roomy).returncode == 0
        assert outputs(tmp_path / "round") == outputs(played)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("damage", ["truncated", "missing", "not finite", "wrong config"])
def test_a_damaged_adapter_is_named(study, tmp_path, damage):
    adapter = tmp_path / "adapter"
    shutil.copytree(study.root / "sft/adapter", adapter)
    weights = adapter / "model.safetensors"
    culprit = "model.safetensors"
    if damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "missing":
        weights.unlink()
    elif damage == "wrong config":
        (adapter / "config.json").write_text("{", encoding="utf-8")
        culprit = "config.json"
    else:
        tensors = load_file(weights)
        tensors["model.norm.weight"][0] = float("nan")
        save_file(tensors, weights, metadata={"format": "pt"})
    model = ModelConfig(**study.configs["sft"]["model"])
    with pytest.raises(UserError, match=culprit):
        load_policy(model, open_base(study.root / "base"), adapter)


@pytest.mark.parametrize("stage", ["rl_round", "evaluate"])
def test_a_stage_with_a_damaged_adapter_says_so_and_writes_nothing(study, tmp_path, stage):
    adapter = tmp_path / "adapter"
    shutil.copytree(study.root / "sft/adapter", adapter)
    (adapter / "model.safetensors").write_bytes(b"not weights")
    out = tmp_path / "out"
    options = study.round_options if stage == "rl_round" else study.evaluation_options
    done = study.run(stage, **options(out, policy=adapter))
    assert str(adapter / "model.safetensors") in one_line_error(done)
    assert not out.exists()


def test_evaluation_rows_and_seeds(study, tmp_path):
    frames = []
    for name, run in (("first", study.run), ("again", study.run_alone)):
        done = run("evaluate", **study.evaluation_options(tmp_path / name))
        assert done.returncode == 0, done.stderr
        frames.append(pd.read_parquet(tmp_path / name / "episodes.parquet"))
    pd.testing.assert_frame_equal(*frames)
    summary = json.loads((tmp_path / "first/summary.json").read_bytes())
    assert summary["policy"] == weights_digest(study.root / "sft/adapter")
    counts = frames[0].groupby(["panel", "temperature"]).size().to_dict()
    assert counts == {
        ("validation", 0.0): 12,
        ("validation", 1.0): 12,
        ("test", 0.0): 24,
        ("test", 1.0): 24,
    }
    # One batch or many: what is sampled on the same weights does not change.
    narrow = study.configs["evaluate"] | {
        "evaluation": study.configs["evaluate"]["evaluation"] | {"in_flight": 5}
    }
    done = study.run("evaluate", config=narrow, **study.evaluation_options(tmp_path / "narrow"))
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(
        frames[0], pd.read_parquet(tmp_path / "narrow" / "episodes.parquet")
    )


def test_more_games_than_the_panel_has_is_an_error(study, tmp_path):
    config = study.configs["evaluate"] | {
        "evaluation": study.configs["evaluate"]["evaluation"] | {"test_games": 25}
    }
    done = study.run("evaluate", config=config, **study.evaluation_options(tmp_path / "x"))
    assert "test_games" in one_line_error(done)


def test_a_changed_game_is_refused(study, tmp_path):
    assets = tmp_path / "assets"
    shutil.copytree(study.root / "assets", assets)
    panel = json.loads((assets / "panels.json").read_bytes())["validation"]
    made = tmp_path / "made"
    shutil.copytree(unpacked(assets / "tasks.tar.gz"), made)
    game = made / panel[0]["path"] / "game.tw-pddl"
    data = json.loads(game.read_bytes())
    place = re.search(r"\(inReceptacle \S+ \S+\)", data["pddl_problem"]).group()
    data["pddl_problem"] = data["pddl_problem"].replace(place, "")
    game.write_text(json.dumps(data), encoding="utf-8")
    pack(made, load("alfworld").task_files, assets / "tasks.tar.gz")
    done = study.run("evaluate", **study.evaluation_options(tmp_path / "x", assets=assets))
    assert panel[0]["path"].split("/")[-1] in one_line_error(done)


@pytest.mark.slow
def test_lora_on_a_pretrained_base(study, tmp_path):
    """The same stages with an adapter in PEFT's format; the tuned policy serves as the base."""
    base = tmp_path / "base"
    shutil.copytree(study.root / "sft/adapter", base)
    shutil.copy(open_base(study.root / "base") / "tokenizer.json", base)
    model = study.configs["sft"]["model"] | {"adapt": "lora"}
    sft = study.configs["sft"] | {"model": model}
    sft["sft"] = sft["sft"] | {"epochs": 0.5}
    done = study.run(
        "sft",
        config=sft,
        base=base,
        expert=study.root / "expert",
        out=tmp_path / "sft",
    )
    assert done.returncode == 0, done.stderr
    adapter = tmp_path / "sft" / "adapter"
    assert (adapter / "adapter_model.safetensors").is_file()
    options = study.round_options(tmp_path / "round", base=base, sft=adapter, policy=adapter)
    done = study.run("rl_round", config=study.configs["rl_round"] | {"model": model}, **options)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "round/train_log.json").read_bytes())["rows"]
    # Step 0 samples from the reference itself; later steps have moved away from it.
    assert rows[0]["observed_kl"] < 1e-3
    assert rows[-1]["observed_kl"] > rows[0]["observed_kl"]


def test_a_second_process_on_the_same_round_is_refused(study, tmp_path):
    options = study.round_options(tmp_path / "round")
    with job_scratch(options["scratch"], options["scratch"], "other"):
        assert "another process" in one_line_error(study.run("rl_round", **options))


def test_demonstrations_that_the_model_cannot_read_are_refused(study, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(open_base(study.root / "base"), base)
    settings = json.loads((base / "config.json").read_bytes())
    (base / "config.json").write_text(
        json.dumps(settings | {"max_position_embeddings": 60}), encoding="utf-8"
    )
    out = tmp_path / "sft"
    done = study.run("sft", base=base, expert=study.root / "expert", out=out)
    assert "exceed the context length of model tiny (60 tokens)" in one_line_error(done)
    assert not out.exists()


def test_no_demonstrations_are_too_few_not_too_long(study, tmp_path):
    expert = tmp_path / "expert"
    expert.mkdir()
    rows = pd.read_parquet(study.root / "expert/trajectories.parquet").head(0)
    rows.to_parquet(expert / "trajectories.parquet")
    done = study.run("sft", base=study.root / "base", expert=expert, out=tmp_path / "sft")
    share = study.configs["sft"]["sft"]["validation_share"]
    message = f"too few for a validation set: `sft.validation_share: {share}` leaves 0 for training"
    assert f": 0 trajectories are {message}" in one_line_error(done)
