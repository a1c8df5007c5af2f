"""Shared by the benchmarks: a small study's games, and a policy that has learnt to play them."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hgrpo.agent.conversation import Conversation
from hgrpo.envs.alfworld.settings import AlfworldConfig
from hgrpo.envs.base import Task
from hgrpo.envs.make import env_factory
from hgrpo.envs.panels import read_panels
from hgrpo.policy.policy import Policy, load_policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.make import make_engine
from hgrpo.rollout.settings import EngineConfig
from hgrpo.study.study import load_study
from hgrpo.workflow.stage_config import as_json, stage_config

ROOT = Path(__file__).resolve().parent.parent
_TRAIN_GAMES, _TRAJECTORIES = 400, 3000


@dataclass(frozen=True)
class Laptop:
    """A prepared folder: games, base, and an SFT policy trained for seconds."""

    folder: Path
    env: AlfworldConfig
    model: ModelConfig
    tasks: list[Task]

    def policy(self) -> Policy:
        """The SFT policy."""
        return load_policy(self.model, self.folder / "base", self.folder / "sft" / "adapter")

    def collector(
        self,
        policy: Policy,
        capacity: int,
        turns: int,
        reply: int,
        kind: str = "torch",
    ) -> Collector:
        """An engine of this kind at temperature 1, `capacity` episodes in flight."""
        conversation = Conversation(policy.tokenizer)
        config, sampling = EngineConfig(kind=kind), Sampling(1.0, reply)
        engine = make_engine(config, policy, capacity, sampling, conversation.end_id)
        make_env = env_factory(self.env, self.folder / "assets")
        return Collector(engine, conversation, make_env, turns, reply)


def prepare(folder: Path) -> Laptop:
    """Run assets, expert, base and SFT of a small laptop study, unless they exist."""
    study = load_study(ROOT / "configs/studies/bakeoff.yaml", {})
    stages = {
        "assets": ("--seed", "0"),
        "expert": ("--assets", folder / "assets", "--seed", "0"),
        "base": ("--expert", folder / "expert"),
        "sft": ("--base", folder / "base", "--expert", folder / "expert"),
    }
    configs = {stage: stage_config(study, stage) for stage in stages}
    for stage in ("assets", "expert"):
        configs[stage]["env"]["panels"]["train"] = _TRAIN_GAMES
    configs["expert"]["env"]["expert"]["trajectories"] = _TRAJECTORIES
    configs["base"]["model"]["tiny"]["pretrain_trajectories"] = 0
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / "config.json"
    if not marker.is_file() or marker.read_text() != as_json(configs):
        for stage, arguments in stages.items():
            command = [sys.executable, "-m", f"hgrpo.cli.{stage}"]
            command += ["--config", as_json(configs[stage]), *map(str, arguments)]
            subprocess.run([*command, "--out", str(folder / stage)], check=True, cwd=ROOT)
        marker.write_text(as_json(configs))
    panel = read_panels(folder / "assets" / "panels.json")["train"]
    env, model = configs["assets"]["env"], configs["sft"]["model"]
    return Laptop(folder, AlfworldConfig(**env), ModelConfig(**model), panel)
