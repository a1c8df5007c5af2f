"""A whole study's artefacts, invented but shaped like real ones, for tests of the report."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from places import PROJECT
from stage_settings import run_stage, stage_settings

from hgrpo.evaluation.merge import merge_episodes
from hgrpo.games.alfworld.settings import TASK_TYPES as TYPES
from hgrpo.games.base import Task
from hgrpo.learning.method import MethodConfig
from hgrpo.report.inputs import read_inputs
from hgrpo.study.study import load_study
from hgrpo.trajectories.store import (
    SEQUENCES_FILE,
    TURNS_FILE,
    sequence_table,
    turn_table,
    write_table,
)
from hgrpo.trajectories.trajectory import Trajectory, Turn

STUDIES = PROJECT / "configs/studies"
# Log-odds that the last round adds to the supervised policy; OTHERS for arms not named.
OTHERS = 0.7
GAIN = {
    "SFTOnly": 0.0,
    "flatGRPO": 0.55,
    "Progressive": 1.05,
    "RandomCredit": 0.5,
    "LLMJudge": 0.7,
    "TurnRDV2": 1.0,
}
PROVENANCE = {
    "packages": {"hgrpo": "0.1.0", "numpy": "2.4.6", "torch": "2.13.0"},
    "code": "0f3c9a1b22d4e857",
    "python": "3.11.9",
    "hardware": {"machine": "x86_64", "cores": 2, "threads": 1},
}
SHARPENING = {0.0: 0.0, 0.3: 0.02, 0.5: 0.08, 0.7: -0.05, 1.0: -0.2}


@dataclass(frozen=True)
class FakeStudy:
    """Where the artefacts lie, and the report stage's settings."""

    root: Path
    config: dict

    def files(self, pattern: str) -> list[Path]:
        """Files matching a glob under the study's folder, sorted."""
        return sorted(self.root.glob(pattern))


FIT_SECONDS = 7.5


def run_cli(stage: str, *arguments: object) -> subprocess.CompletedProcess:
    """Run `python -m hgrpo.cli.stage <stage>` to its end."""
    command = [sys.executable, "-m", "hgrpo.cli.stage", stage, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def build_report(
    study: FakeStudy, stages: tuple[str, ...] = ("merge", "figures", "report")
) -> Path:
    """Run the stages in this process, as the pipeline does; return the page's path.

    Without the stage figures a page has no figures, and is there sooner.
    """
    root, report = study.root, study.root / "report"
    logs = study.files("rl/*/*/*/train_log.json")
    fits = study.files("credit_fit/*/*/*/train_log.json")
    results = ["--episodes", report / "episodes.parquet", "--train-logs", *logs, "--fits", *fits]
    turns = study.files("rl/*/*/*/turns.parquet")
    arguments = {
        "merge": [
            *["--out", report / "episodes.parquet"],
            *study.files("eval/*/*/*/episodes.parquet"),
        ],
        "figures": [
            *[*results, "--turns", *turns],
            *["--out", report / "figures"],
        ],
        "report": [
            *results,
            *["--study", root / "config.yaml", "--figures", report / "figures"],
            *["--snapshots", *study.files("rl/*/*/*/config.yaml")],
            *["--rounds", *study.files("rl/*/*/*/summary.json")],
            *["--expert", root / "expert/summary.json", "--out", report / "report.html"],
            *["--comparison", report / "methods_comparison.json", "--tables", report / "tables"],
            *["--findings", report / "findings.txt"],
        ],
    }
    if "figures" not in stages and not (report / "figures").exists():
        (report / "figures").mkdir(parents=True)
        (report / "figures/index.json").write_text("[]", encoding="utf-8")
    for stage in stages:
        config = {"methods": [*study.config["methods"]]} if stage == "merge" else study.config
        run_stage(stage, "--config", json.dumps(config), *arguments[stage])
    return report / "report.html"


def write_study(
    root: Path,
    methods: tuple[str, ...] = ("SFTOnly", "flatGRPO", "Progressive", "RandomCredit"),
    seeds: tuple[int, ...] = (11, 23, 31),
    rounds: int = 5,
    n_test: int = 120,
    n_validation: int = 60,
    steps: int = 8,
    draw: int = 0,
    settings: dict[str, dict] | None = None,
) -> FakeStudy:
    """Write evaluations, training logs, turns, snapshots and config.yaml under `root`.

    `settings` (arm -> its settings, see `shipped`) are those of the arms in place of `methods`.
    """
    rng = np.random.default_rng(draw)
    arms = settings or {name: resolved_arm(name) for name in methods}
    learnt = [name for name in arms if arms[name]["train"]]
    reference = learnt[0] if learnt and "flatGRPO" not in learnt else "flatGRPO"
    panels = {
        "validation": _panel("valid_seen", n_validation, rng),
        "test": _panel("valid_unseen", n_test, rng),
    }
    for method, arm in arms.items():
        trained = arm["train"]
        liking = rng.normal(0, 0.5, n_test + n_validation)
        for seed in seeds:
            bias = rng.normal(0, 0.12) if trained else 0.0
            for number in range(1, rounds + 1) if trained else [0]:
                gain = GAIN.get(method, OTHERS) * (1 - 0.55**number) + bias if trained else 0.0
                temperatures = [0.0] if trained else list(SHARPENING)
                frame = pd.concat(
                    _episodes(method, seed, number, panel, tasks, t, gain, liking, rng)
                    for panel, tasks in panels.items()
                    for t in temperatures
                )
                folder = root / f"eval/{method}/seed_{seed}/round_{number}"
                folder.mkdir(parents=True)
                frame.to_parquet(folder / "episodes.parquet", index=False)
                if trained:
                    folder = root / f"rl/{method}/seed_{seed}/round_{number}"
                    folder.mkdir(parents=True)
                    credit = arm["credit"]
                    _write_round(folder, method, seed, number, steps, gain, credit, rng)
                    if number == 1 or (number == rounds and credit["kind"] == "turnrd"):
                        _write_trajectories(folder, method, seed, number)
                    if credit["kind"] == "turnrd" and number < rounds:
                        folder = root / f"credit_fit/{method}/seed_{seed}/round_{number}"
                        folder.mkdir(parents=True)
                        _write_fit(folder, number, credit, rng)
    config = {
        "study": "fake",
        "description": "Credit assigners on invented ALFWorld houses",
        "reference": reference,
        "seeds": list(seeds),
        "rounds": rounds,
        "methods": arms,
        "confidence": 0.95,
    }
    (root / "expert").mkdir()
    row = {"trajectories": 90, "at_turn_cap": 0.41, "at_expert_cap": 0.6, "score": 0.6}
    ceiling = {"trajectories": 20, "at_turn_cap": 0.93, "at_expert_cap": 1.0, "score": 1.0}
    (root / "expert/summary.json").write_text(
        json.dumps(
            {
                "success": {"all": row},
                "informed": {"all": ceiling},
                "informed_is": "who knows the house",
                "informed_panel": "test",
                "skipped": {"no walkthrough": 3},
            }
        ),
        encoding="utf-8",
    )
    (root / "config.yaml").write_text(
        yaml.safe_dump(_study_file(config), sort_keys=False), encoding="utf-8"
    )
    return FakeStudy(root, config)


LABELS = {
    "SFTOnly": "SFT only",
    "flatGRPO": "flat GRPO",
    "RandomCredit": "random credit",
    "LLMJudge": "LLM judge",
    "TurnRDV2": "TurnRD v2",
}


def resolved_arm(name: str) -> dict:
    """An arm as the figures stage has it, with nothing but its name to tell it from others."""
    method = MethodConfig(name=name, label=LABELS.get(name, name), train=name != "SFTOnly")
    resolved = method.model_dump(mode="json", exclude={"training"})
    return resolved | {"training": {"lr": 3e-4, "rollouts_per_task": 8}}


def shipped(study: str) -> dict[str, dict]:
    """Settings of the arms of a study of configs/studies, as the figures stage has them."""
    config = stage_settings(load_study(STUDIES / f"{study}.yaml"), "figures")
    return {name: config["methods"][name] for name in config["order"]}


def write_merged_study(folder: Path, **options: object) -> FakeStudy:
    """`write_study`, with the episodes of all arms merged into `episodes.parquet`."""
    study = write_study(folder, **options)
    merged = merge_episodes(study.files("eval/*/*/*/episodes.parquet"))
    merged.to_parquet(study.root / "episodes.parquet")
    return study


def inputs_of(study: FakeStudy):
    """What tables and figures are made from, for a merged study."""
    logs = study.files("rl/*/*/*/train_log.json")
    fits = study.files("credit_fit/*/*/*/train_log.json")
    return read_inputs(study.config, study.root / "episodes.parquet", logs, fits)


def _panel(split: str, size: int, rng: np.random.Generator) -> pd.DataFrame:
    types = [TYPES[i % len(TYPES)] for i in range(size)]
    return pd.DataFrame(
        {
            "task_id": [f"{split}/{kind}/trial_{i:05d}" for i, kind in enumerate(types)],
            "content_hash": [f"{split}{i:08x}".ljust(64, "0") for i in range(size)],
            "task_type": types,
            "difficulty": rng.normal(-0.6, 1.5, size)
            + np.array([0.9, 0.3, -0.2, -0.2, -0.3, -0.7])[np.arange(size) % 6],
        }
    )


def _episodes(method, seed, number, panel, tasks, temperature, gain, liking, rng):
    size = len(tasks)
    shift = gain + SHARPENING[temperature] + liking[:size] * (gain != 0)
    chance = 1 / (1 + np.exp(-(tasks["difficulty"].to_numpy() + shift)))
    # Greedy play of one supervised policy is the same for every seed.
    draws = np.random.default_rng(99) if method == "SFTOnly" and temperature == 0 else rng
    success = draws.random(size) < chance
    turns = np.where(success, draws.integers(4, 12, size), 12)
    return pd.DataFrame(
        {
            "method": method,
            "seed": seed,
            "round": number,
            "panel": panel,
            "temperature": temperature,
            "task_id": tasks["task_id"],
            "content_hash": tasks["content_hash"],
            "task_type": tasks["task_type"],
            "success": success,
            "env_return": success.astype(float),
            "final_progress": np.where(success, 1.0, draws.choice([0, 1 / 3, 2 / 3], size)),
            "n_turns": turns,
            "n_inadmissible": draws.binomial(turns, 0.02 + 0.05 * temperature),
            "n_overlong": draws.binomial(turns, 0.001),
            "n_empty": draws.binomial(turns, 0.0005),
            "truncated": ~success,
            "n_action_tokens": turns * 5,
        }
    )


def _write_round(folder, method, seed, number, steps, gain, credit, rng):
    rows, judge = [], method == "LLMJudge"
    for step in range(steps):
        rate = 1 / (1 + np.exp(0.5 - gain - 0.02 * step)) + rng.normal(0, 0.02)
        rows.append(
            {
                "step": step,
                "round": number,
                "mean_reward": rate,
                "std_reward": float(np.sqrt(max(0.0, rate * (1 - rate)))),
                "success_rate": rate,
                "mean_turns": 10 - 2 * rate,
                "truncated": int(256 * (1 - rate)),
                "context_overflow": 0,
                "n_trajectories": 256,
                "n_groups": 32,
                "dead_groups": int(rng.integers(4, 12)),
                "n_action_tokens": int(256 * (10 - 2 * rate) * 5),
                "n_forward_tokens": 256 * 150,
                "n_turns": 256 * 8,
                "inadmissible_share": float(rng.uniform(0.02, 0.06)),
                "inadmissible": int(rng.integers(50, 150)),
                "overlong": int(rng.integers(0, 4)),
                "empty": int(rng.integers(0, 2)),
                "policy_loss": rng.normal(0, 0.01),
                "kl_term": 0.0004,
                "total_loss": rng.normal(0, 0.01),
                "observed_kl": float(0.002 * (step + 1 + (number - 1) * steps) ** 0.8),
                "kl_coef": 0.01 * 1.5 ** (number % 3),
                "grad_norm": float(rng.uniform(0.1, 0.4)),
                "entropy": float(0.25 - 0.01 * number + rng.normal(0, 0.005)),
                "ratio_mean": 1.0,
                "ratio_max": float(rng.uniform(1.2, 2.5)),
                "clip_fraction": float(rng.uniform(0, 0.02)),
                "ess": float(rng.uniform(0.95, 1)),
                "mismatch_mean": 1e-6,
                "mismatch_max": 8e-6,
                "mean_abs_traj_adv": float(rng.uniform(0.6, 0.8)),
                "mean_abs_turn_adv": float(rng.uniform(0.2, 0.5)) * (method != "flatGRPO"),
                "mean_abs_token_adv": float(rng.uniform(0.5, 0.8)),
                "lr": 3e-4,
                "collect_s": float(rng.uniform(1.5, 2.0)),
                "credit_s": 1.1 if judge else 0.02,
                "update_s": float(rng.uniform(1.0, 1.3)),
                "elapsed_s": 4.3 if judge else 3.2,
            }
            | _report(credit, number, step, rng)
        )
    if number == 1:  # a batch whose groups were all dead logs no update
        for name in ("policy_loss", "observed_kl", "grad_norm", "entropy", "ess"):
            rows[1][name] = None
    log = {"rows": rows, "config": {"method": {"name": method}}}
    log["finished"] = f"2026-02-{seed % 9 + number:02d}T12:00:00+00:00"
    (folder / "train_log.json").write_text(json.dumps(log), encoding="utf-8")
    snapshot = {
        "method": {"name": method, "credit": credit},
        "training": {"lr": 1e-4},
        "seed": seed,
        "round": number,
        **PROVENANCE,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(snapshot), encoding="utf-8")


def _report(credit: dict, number: int, step: int, rng: np.random.Generator) -> dict:
    """What an assigner says of itself in a row of the log."""
    kind = credit["kind"]
    if kind == "judge":
        calls = {"judge_calls": 240 - step, "judge_cache_hits": 16 + step}
        return calls | {"judge_fallbacks": int(step == 1), "judge_dollars": 0.01}
    extras = {}
    if kind == "counterfactual" or credit.get("counterfactual"):
        extras |= {"cf_branches": 900 + step, "cf_replies": 4000, "cf_replayed_turns": 3000}
        extras |= {"cf_tokens": 110_000}
    if kind == "turnrd" and number > 1:  # the first round has no model yet
        extras |= {"alpha_var": rng.uniform(0.005, 0.01) / number}
        extras |= {"alpha_entropy_ratio": 1 - rng.uniform(0.02, 0.05) * number}
        extras |= {"alpha_progress_corr": 0.1 * number - rng.uniform(0, 0.1)}
        if credit["model"]["version"] == "v1":
            extras["cls_query_norm"] = 0.2 * number
    return extras


def _write_fit(folder: Path, number: int, credit: dict, rng: np.random.Generator) -> None:
    rows = [
        {
            "epoch": epoch,
            "phase": "replay",
            "validation_loss": rng.uniform(0.2, 0.3) / (number + epoch),
            "return_corr": rng.uniform(0.15, 0.25) * (epoch + 1),
            "alpha_cf_corr": 0.1 * (number + epoch) if credit.get("counterfactual") else None,
            "supervised_share": 0.3 if credit.get("counterfactual") else 0.0,
        }
        for epoch in range(3 if number > 1 else 2)  # the first one stopped early
    ]
    log = {"rows": rows, "elapsed_s": FIT_SECONDS}
    (folder / "train_log.json").write_text(json.dumps(log), encoding="utf-8")


WON = (
    ("go to fridge 1", "The fridge 1 is closed.", 0.0),
    ("open fridge 1", "You open the fridge 1. In it, you see a mug 2, and an apple 1.", 0.0),
    ("take apple 1 from fridge 1", "You pick up the apple 1 from the fridge 1.", 1 / 3),
    ("look", "You are in the middle of a room. Looking quickly around you, you see nothing.", 0.0),
    ("go to microwave 1", "The microwave 1 is closed.", 0.0),
    ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1.", 1 / 3),
    ("go to diningtable 1", "On the diningtable 1, you see a <plate 1> & a knife 2.", 0.0),
    ("move apple 1 to diningtable 1", "You move the apple 1 to the diningtable 1.", 1 / 3),
)
LOST = (
    ("go to cabinet 1", "The cabinet 1 is closed.", 0.0),
    ("take apple 1 from cabinet 1", "Nothing happens.", 0.0),
    ("open cabinet 1", "You open the cabinet 1. In it, you see nothing.", 0.0),
    ("go to fridge 1", "The fridge 1 is closed.", 0.0),
    ("open fridge 1", "You open the fridge 1. In it, you see a mug 2, and an apple 1.", 0.0),
    ("take apple 1 from fridge 1", "You pick up the apple 1 from the fridge 1.", 1 / 3),
    ("go to diningtable 1", "On the diningtable 1, you see a <plate 1> & a knife 2.", 0.0),
    ("move apple 1 to diningtable 1", "You move the apple 1 to the diningtable 1.", -1 / 3),
)


GOAL = "put a hot apple in diningtable."


def _write_trajectories(folder: Path, method: str, seed: int, number: int) -> None:
    played = _trajectories(method, seed, number)
    write_table(turn_table(played, number, 0), folder / TURNS_FILE)
    write_table(sequence_table(played, number, 0), folder / SEQUENCES_FILE)


def _trajectories(method: str, seed: int, number: int) -> list[Trajectory]:
    """Two groups of three rollouts of step 0: the same actions for every arm of a seed."""
    rng = np.random.default_rng([seed, sum(map(ord, method)), *([number] if number > 1 else [])])
    played = []
    for group in range(2):
        task_id = f"train/pick_heat_then_place_in_recep/trial_{group:05d}"
        task = Task(task_id, task_id, f"train{group:08x}".ljust(64, "0"), TYPES[0])
        for rollout, script in enumerate((WON, LOST, LOST[:6] if group else LOST)):
            trajectory = Trajectory(task, rollout, GOAL, success=script is WON)
            observation = (
                "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.\n\n"
                f"Your task is to: {GOAL}"
            )
            credit = _credit(method, script, rng)
            for index, (action, answer, progress) in enumerate(script):
                won = script is WON
                trajectory.turns.append(
                    Turn(
                        observation,
                        action,
                        (2 * index + 1, 2 * index + 2),
                        env_reward=float(won and index == len(script) - 1),
                        progress=progress,
                        admissible=answer != "Nothing happens.",
                        overlong=False,
                        credit=float(credit[index]),
                        advantage=float((1.4 if won else -0.7) + 0.5 * credit[index]),
                    )
                )
                observation = answer
            played.append(trajectory)
    return played


def _credit(method: str, script: tuple, rng: np.random.Generator) -> list[float]:
    progress = np.array([step[2] for step in script])
    if method == "flatGRPO":
        return [0.0] * len(script)
    if method == "Progressive":
        return progress.tolist()
    if method == "RandomCredit":
        return rng.permutation(progress).tolist()
    return (progress + rng.normal(0, 0.15, len(script))).tolist()


def _study_file(config: dict) -> dict:
    return {
        "name": config["study"],
        "description": config["description"],
        "methods": config["methods"],
        "seeds": config["seeds"],
        "rounds": config["rounds"],
        "reference": config["reference"],
        "training": {"lr": 3e-4, "tasks_per_step": 32, "rollouts_per_task": 8},
        "evaluation": {"test_games": 500, "validation_games": 200},
        "provenance": PROVENANCE,
    }
