"""Estimates the duration and output size of jobs from the rates of a reference machine.

The formulas are in docs/commands.md. `workflow_scripts/reference_rates.py` writes `reference.json`.
Estimates of bytes are upper bounds. Policies use nearly all of a study's disk space, because every
round stores its own policy and optimiser state.
"""

import contextlib
import json
import math
import re
from pathlib import Path

from hgrpo.base_model.settings import TinyModel
from hgrpo.errors import UserError
from hgrpo.games.user_path import user_path
from hgrpo.policy.settings import LoraConfig, ModelConfig
from hgrpo.stages.files import runs
from hgrpo.stages.order import resources_key
from hgrpo.study.study import Study

REFERENCE = Path(__file__).with_name("reference.json")
_ALL_TASKS = 3553  # size of a panel without a fixed size: ALFWorld's number of training games
# Published studies with dynamic sampling play 1.6 to 2.0 times `tasks_per_step` tasks per step.
_FURTHER_PLAY = 1.8
CRITIC = 2.4  # cost of an update with a critic relative to GRPO, see docs/benchmarks.md
_GROWTH = 0.9  # seconds per token grow with the parameters to this power, from 0.5 M to 135 M
OF_ANY_MODEL = ("study_config", "merge", "figures", "report")
# Each round stores four 32-bit numbers per trained weight: one in the policy, and three in the
# trainer's state (a copy of the weight, and two moments of AdamW).
_BYTES_PER_WEIGHT = 16
# Base weights are counted as 32-bit numbers, although most models store 16 bits per weight.
_BYTES_PER_BASE_WEIGHT = 4
# Upper bound on the bytes per token in the rollout tables (1 byte in `bakeoff_plateau`).
# All conversations are assumed to have the maximum length.
_BYTES_PER_TOKEN = 2
_LONGEST = 8192  # tokens of a conversation if the model's file does not set `max_length`
# Number of inputs plus outputs of a LoRA target module, divided by the hidden size.
_ATTENTION = dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), 2)
_FEED_FORWARD = 7
# Upper bound on width * layers / sqrt(parameters), which is between 0.9 and 1.5 for SmolLM2-135M
# and for the Qwen2.5 models from 0.5B to 7B.
_SHAPE = 1.5
_SIZE_IN_NAME = re.compile(r"(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


class Reference:
    """Estimates for a study's jobs from reference rates, on a CPU with or without bfloat16."""

    def __init__(self, study: Study, bfloat16: bool):
        self._study, self._known = study, json.loads(REFERENCE.read_text(encoding="utf-8"))
        cap, size = study.env.turn_cap, parameters(study.model) or 1
        compiled = getattr(study.config.engine.declared, "compiled", False)

        def other_game(row: dict) -> float:
            return 10 * (row["game"] != study.env.name) + abs(math.log(row["turn_cap"] / cap))

        def other_player(row: dict) -> float:
            far = abs(math.log(row["parameters"] / size)) + (row["compiled"] != compiled)
            return far + 0.1 * other_game(row)

        self._game = min(self._known["games"], key=other_game)
        self._player = min(self._known["players"], key=other_player)
        self._length = cap / self._game["turn_cap"]
        self._play = self._train = (size / self._player["parameters"]) ** _GROWTH
        half = bfloat16 or study.model.base_dtype == "bfloat16"
        if study.model.train_dtype == "float32" or (study.model.train_dtype == "auto" and not half):
            self._train *= self._known["float32"]

    def is_ceiling(self, stage: str) -> bool:
        """Whether `seconds` is the time limit; true if no rate fits the GPU, engine or model."""
        on_gpu = any(each.gpu for each in dict(self._study.config.resources).values())
        other = self._study.config.engine.kind != "torch" or not parameters(self._study.model)
        unknown = (on_gpu or other) and stage not in OF_ANY_MODEL
        return unknown or stage not in self._known["starts"]

    def seconds(self, stage: str, arm: str) -> float:
        """Estimated seconds of a job; `arm` is the name of the job's method."""
        if self.is_ceiling(stage):
            return 60.0 * self._study.config.resources.of(resources_key(stage)).runtime
        units, each = self._work(stage, arm)
        return self._known["starts"][stage] + units * each

    def bytes(self, stage: str, arm: str) -> float:
        """Estimated bytes of a job's output; an upper bound for stages that write a model."""
        if stage in ("base", "sft", "rl_round"):
            limit = self._study.config.resources.of(stage).mem_mb * 2**20
            return model_bytes(self._study, stage, arm) or limit
        return self._known["bytes"].get(stage, 1000.0) * self._work(stage, arm)[0]

    def _work(self, stage: str, arm: str) -> tuple[float, float]:
        study, game, player = self._study, self._game, self._player
        demonstrations, tokens = study.env.expert.trajectories, game["tokens"] * self._length
        match stage:
            case "assets":
                tasks = sum(size or _ALL_TASKS for size in study.env.panels.sizes.values())
                return tasks, game["task"]
            case "expert":
                return demonstrations, game["demonstration"]
            case "base":
                return 1, player["base"] * self._train
            case "sft":
                each = player["sft"] * study.config.sft.epochs * tokens
                return demonstrations, each * self._train
            case "rl_round":
                training, method = study.training[arm], study.methods[arm]
                continued = _continuations(method.credit.declared, game["turns"] * self._length)
                play = player["play"] + continued * player["continuation"]
                play *= _FURTHER_PLAY if training.dynamic_sampling else 1
                update = player["update"] * training.epochs * (CRITIC if method.uses_critic else 1)
                seconds = tokens * (play * self._play + update * self._train)
                return study.round_trajectories[arm], seconds
            case "credit_fit":
                return replay(study, arm), self._known["each"][stage]
            case "evaluate":
                return episodes(study, arm), tokens * player["evaluation"] * self._play
        return len(runs(study)), self._known["each"].get(stage, 0.0)


def episodes(study: Study, arm: str) -> int:
    """Number of an arm's episodes in an evaluation."""
    train, evaluation = study.methods[arm].train, study.config.evaluation
    validates = not train or evaluation.validate_trained
    games = evaluation.test_games + validates * evaluation.validation_games
    return games * len(evaluation.temperatures if train else evaluation.sft_temperatures)


def replay(study: Study, arm: str) -> float:
    """Mean number of trajectories per fit of an arm. The fit after round r reads rounds 1 to r."""
    return study.round_trajectories[arm] * study.config.rounds / 2


def _continuations(credit: object, turns: float) -> float:
    """Mean number of continuations played per trajectory to compute an arm's credit."""
    credit = getattr(credit, "counterfactual", None) or credit
    each = getattr(credit, "continuations", 0) or getattr(credit, "alternatives", 0)
    drawn = min(turns, getattr(credit, "turns_per_trajectory", None) or turns)
    return drawn * each * getattr(credit, "share_of_groups", 1.0)


def model_bytes(study: Study, stage: str, method: str) -> int | None:
    """Bytes written by a job of `base`, `sft` or `rl_round`; None if the model's size is unknown.

    A round writes the rollout tables, and the weights and trainer state of all trained networks.
    """
    model, size = study.model, parameters(study.model)
    if size is None or stage == "base":
        return size and _BYTES_PER_BASE_WEIGHT * size
    trained = size if model.adapt == "full" else lora_parameters(size, model.lora)
    if stage == "sft":
        return trained * _BYTES_PER_WEIGHT
    training = study.training[method]
    networks = 2 if study.methods[method].uses_critic else 1
    played = training.steps_per_round * training.most_tasks_per_step * training.rollouts_per_task
    longest = model.max_length or _LONGEST
    if model.tiny is not None:
        longest = min(longest, model.tiny.max_positions)
    return networks * trained * _BYTES_PER_WEIGHT + played * longest * _BYTES_PER_TOKEN


def parameters(model: ModelConfig) -> int | None:
    """Approximate number of parameters of a base model; None if this number is unknown.

    For a tiny model, the maximum vocabulary is assumed. For weight files, 16 bits per weight are
    assumed. If there are no files, the number is parsed from a name that contains 1.5B or 135m.
    """
    if model.tiny is not None:
        return tiny_parameters(model.tiny)
    if model.path is not None:
        with contextlib.suppress(UserError, OSError):
            weights = user_path(model.path, "path").glob("*.safetensors")
            if size := sum(file.stat().st_size for file in weights):
                return size // 2
    names = (Path(model.path or "").name, model.name)
    matches = filter(None, (_SIZE_IN_NAME.search(name.lower()) for name in names))
    return next((int(float(m[1]) * {"b": 1e9, "m": 1e6}[m[2]]) for m in matches), None)


def tiny_parameters(tiny: TinyModel) -> int:
    """Number of parameters of a Qwen2 model with tied embeddings and `max_vocab` tokens."""
    width, keys = tiny.hidden_size, tiny.hidden_size // tiny.heads * tiny.kv_heads
    attention = 2 * width * width + 2 * width * keys + width + 2 * keys  # the last are biases
    layer = attention + 3 * width * tiny.intermediate_size + 2 * width
    return tiny.max_vocab * width + tiny.layers * layer + width


def lora_parameters(size: int, lora: LoraConfig) -> int:
    """Upper bound on the size of a LoRA adapter for a base model with `size` parameters.

    A module with n inputs and m outputs gets rank * (n + m) parameters.
    """
    widths = sum(_ATTENTION.get(target, _FEED_FORWARD) for target in lora.targets)
    return math.ceil(lora.rank * widths * _SHAPE * math.sqrt(size))
