"""Prepare a small study (its games, base model and SFT policy) for several benchmarks."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hgrpo.agent.conversation import Conversation
from hgrpo.archive import unpacked
from hgrpo.base_model.folder import open_base
from hgrpo.config.canonical import as_json
from hgrpo.config.read import read_yaml
from hgrpo.credit.settings import CreditSettings
from hgrpo.games.base import Task, TextEnv
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load
from hgrpo.games.panels import read_panels
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages import order
from hgrpo.stages.sections import environment_settings
from hgrpo.study.study import load_study

ROOT = Path(__file__).resolve().parent.parent
_TRAIN_GAMES, _TRAJECTORIES = 400, 3000
PLAIN, COMPILED = EngineConfig(), EngineConfig(compiled=True)


@dataclass(frozen=True)
class Laptop:
    """A folder with games, a base model, and an SFT policy that was trained for a few seconds."""

    folder: Path
    env: EnvSettings
    model: ModelConfig
    tasks: list[Task]

    def policy(self) -> Policy:
        """The SFT policy."""
        base = open_base(self.folder / "base")
        return load_policy(self.model, base, self.folder / "sft" / "adapter")

    def make_env(self) -> Callable[[], TextEnv]:
        """Return a function that makes one environment."""
        tasks = unpacked(self.folder / "assets" / "tasks.tar.gz")
        return load(self.env.name).factory(self.env, tasks)

    def collector(
        self,
        policy: Policy,
        capacity: int,
        turns: int,
        reply: int,
        engine: EngineConfig = PLAIN,
        needs: CreditSettings | None = None,
    ) -> Collector:
        """Make a collector for `capacity` parallel episodes, which samples at temperature 1.

        Args:
            needs: settings of a credit assigner. The collector computes embeddings if the assigner
                requires them. None means that there is no assigner.
        """
        needs = needs or CreditSettings()
        conversation = Conversation(policy.tokenizer)
        made = engine.make(policy, capacity, Sampling(1.0, reply), needs.reads_embeddings)
        make_env = self.make_env()
        return Collector(made, conversation, make_env, turns, reply)


def prepare(folder: Path, name: str = "alfworld-laptop") -> Laptop:
    """Run the stages assets, expert, base and SFT of a small study, if they have not run before.

    Args:
        name: name of the environment's file in configs/envs.
    """
    path = ROOT / f"configs/envs/{name}.yaml"
    env = environment_settings(read_yaml(path), str(path))
    study = replace(load_study(ROOT / "configs/studies/bakeoff_plateau.yaml", {}), env=env)
    stages = {
        "assets": ("--seed", "0"),
        "expert": ("--assets", folder / "assets", "--seed", "0"),
        "base": ("--expert", folder / "expert"),
        "sft": ("--base", folder / "base", "--expert", folder / "expert"),
    }
    configs = {stage: order.load(stage).from_study(study) for stage in stages}
    for stage in ("assets", "expert"):
        configs[stage]["env"]["panels"]["train"] = _TRAIN_GAMES
    configs["expert"]["env"]["expert"]["trajectories"] = _TRAJECTORIES
    configs["base"]["model"]["tiny"]["pretrain_trajectories"] = 0
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / "config.json"
    if not marker.is_file() or marker.read_text(encoding="utf-8") != as_json(configs):
        for stage, arguments in stages.items():
            command = [sys.executable, "-m", "hgrpo.cli.stage", stage]
            command += ["--config", as_json(configs[stage]), *map(str, arguments)]
            subprocess.run([*command, "--out", str(folder / stage)], check=True, cwd=ROOT)
        marker.write_text(as_json(configs), encoding="utf-8")
    panel = read_panels(folder / "assets" / "panels.json")["train"]
    env = environment_settings(configs["assets"]["env"], str(path))
    return Laptop(folder, env, ModelConfig(**configs["sft"]["model"]), panel)
