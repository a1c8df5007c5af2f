"""Seconds and bytes of jobs before any has run: rates of a reference machine times the work.

docs/commands.md has the formulas. `workflow_scripts/reference_rates.py` makes `reference.json`.
"""

import json
import math
from pathlib import Path

from hgrpo.stages.files import runs
from hgrpo.stages.order import resources_key
from hgrpo.study.study import Study
from hgrpo.workflow.planning.disk import model_bytes, parameters
from hgrpo.workflow.planning.machine_speed import MachineSpeed

REFERENCE = Path(__file__).with_name("reference.json")
_ALL_TASKS = 3553  # of a panel without a size: as many as ALFWorld has for training
# In published studies dynamic sampling plays 1.6 to 2.0 times `tasks_per_step` tasks.
_FURTHER_PLAY = 1.8
CRITIC = 2.4  # an update with a critic in GRPO updates, see docs/benchmarks.md
_GROWTH = 0.9  # seconds of a token grow as the parameters to this power, from 0.5 M to 135 M
OF_ANY_MODEL = ("study_config", "merge", "figures", "report")


class Reference:
    """Estimates of a study's jobs on a machine of some speed."""

    def __init__(self, study: Study, speed: MachineSpeed):
        self._study, self._known = study, json.loads(REFERENCE.read_text(encoding="utf-8"))
        cap, size = study.env.turn_cap, parameters(study.model) or 1
        compiled = getattr(study.config.engine.declared, "compiled", False)

        def other_game(row: dict) -> float:
            return 10 * (row["game"] != study.env.name) + abs(math.log(row["turn_cap"] / cap))

        def other_player(row: dict) -> float:
            far = abs(math.log(row["parameters"] / size)) + (row["compiled"] != compiled)
            return far + 0.1 * other_game(row)

        reference = MachineSpeed(**self._known["speed"])
        self._game = min(self._known["games"], key=other_game)
        self._player = min(self._known["players"], key=other_player)
        self._length = cap / self._game["turn_cap"]
        python, matmul = speed.python / reference.python, speed.matmul / reference.matmul
        grown = (size / self._player["parameters"]) ** _GROWTH
        dtype = study.model.train_dtype
        if dtype == "auto":
            half = speed.bfloat16 or study.model.base_dtype == "bfloat16"
            dtype = "bfloat16" if half else "float32"
        train = grown * matmul * (1 if dtype == "bfloat16" else self._known["float32"])
        self._python, self._train, self._play = python, train, grown * math.sqrt(matmul * python)

    def is_ceiling(self, stage: str) -> bool:
        """Whether `seconds` is the time limit: rates hold for no GPU and no other engine."""
        on_gpu = any(each.gpu for each in dict(self._study.config.resources).values())
        other = self._study.config.engine.kind != "torch" or not parameters(self._study.model)
        unknown = (on_gpu or other) and stage not in OF_ANY_MODEL
        return unknown or stage not in self._known["starts"]

    def seconds(self, stage: str, arm: str) -> float:
        """Seconds of a job of a stage; `arm` is its method."""
        if self.is_ceiling(stage):
            return 60.0 * self._study.config.resources.of(resources_key(stage)).runtime
        units, each = self._work(stage, arm)
        return self._known["starts"][stage] * self._python + units * each

    def bytes(self, stage: str, arm: str) -> float:
        """Bytes that a job of a stage writes; of models an upper bound."""
        if stage in ("base", "sft", "rl_round"):
            limit = self._study.config.resources.of(stage).mem_mb * 2**20
            return model_bytes(self._study, stage, arm) or limit
        return self._known["bytes"].get(stage, 1000.0) * self._work(stage, arm)[0]

    def _work(self, stage: str, arm: str) -> tuple[float, float]:
        """Units of a job's work, and seconds of each on this machine."""
        study, game, player = self._study, self._game, self._player
        demonstrations, tokens = study.env.expert.trajectories, game["tokens"] * self._length
        match stage:
            case "assets":
                tasks = sum(size or _ALL_TASKS for size in study.env.panels.sizes.values())
                return tasks, game["task"] * self._python
            case "expert":
                return demonstrations, game["demonstration"] * self._python
            case "base":
                return 1, player["base"] * self._train
            case "sft":
                return demonstrations, study.config.sft.epochs * tokens * player[
                    "sft"
                ] * self._train
            case "rl_round":
                training, method = study.training[arm], study.methods[arm]
                continued = _continuations(method.credit.declared, game["turns"] * self._length)
                play = player["play"] + continued * player["continuation"]
                play *= _FURTHER_PLAY if training.dynamic_sampling else 1
                update = player["update"] * training.epochs * (CRITIC if method.uses_critic else 1)
                seconds = tokens * (play * self._play + update * self._train)
                return study.round_trajectories[arm], seconds
            case "credit_fit":
                return replay(study, arm), self._known["each"][stage] * self._python
            case "evaluate":
                return episodes(study, arm), tokens * player["evaluation"] * self._play
        return len(runs(study)), self._known["each"].get(stage, 0.0) * self._python


def episodes(study: Study, arm: str) -> int:
    """Episodes that an arm plays in an evaluation."""
    train, evaluation = study.methods[arm].train, study.config.evaluation
    validates = not train or evaluation.validate_trained
    games = evaluation.test_games + validates * evaluation.validation_games
    return games * len(evaluation.temperatures if train else evaluation.sft_temperatures)


def replay(study: Study, arm: str) -> float:
    """Mean trajectories of the fits of an arm, each of which reads all rounds so far."""
    return study.round_trajectories[arm] * study.config.rounds / 2


def _continuations(credit: object, turns: float) -> float:
    """Mean number of continuations that credit of a trajectory plays, by the settings' fields."""
    credit = getattr(credit, "counterfactual", None) or credit
    each = getattr(credit, "continuations", 0) or getattr(credit, "alternatives", 0)
    drawn = min(turns, getattr(credit, "turns_per_trajectory", None) or turns)
    return drawn * each * getattr(credit, "share_of_groups", 1.0)
