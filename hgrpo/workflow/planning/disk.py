"""Bytes of a study's models, estimated from above by its settings.

Policies take nearly all of a study's disk: every round keeps its own, with the optimiser's state.
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path

from hgrpo.base_model.settings import TinyModel
from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError
from hgrpo.policy.settings import LoraConfig, ModelConfig
from hgrpo.study.study import Study

# Each round keeps four numbers of 32 bits for a trained weight: the weight in the policy, and in
# the trainer's state the weight again, with two moments.
_BYTES_PER_WEIGHT = 16
# A base's weights in 32 bits; most come with 16.
_BYTES_PER_BASE_WEIGHT = 4
# Tables of play, for each token of the longest conversation. Most are shorter, and the tables are
# compressed: those of `bakeoff_plateau` hold 1 byte.
_BYTES_PER_TOKEN = 2
_LONGEST = 8192  # tokens, where the model's file does not say
# Inputs plus outputs of a module, in units of the model's width. Modules of feed-forward layers
# have the most.
_ATTENTION = dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), 2)
_FEED_FORWARD = 7
# Width times layers, divided by the square root of the parameters: between 0.9 and 1.5 for
# SmolLM2-135M and for Qwen2.5 from 0.5B to 7B.
_SHAPE = 1.5
_SIZE_IN_NAME = re.compile(r"(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


def model_bytes(study: Study, stage: str, method: str) -> int | None:
    """Bytes of a job of the stage base, sft or rl_round; None if the model's size is unknown."""
    size = parameters(study.model)
    if size is None or stage == "rl_round":
        return size and round_bytes(study, method, size)
    return policy_bytes(study.model, size) if stage == "sft" else _BYTES_PER_BASE_WEIGHT * size


def policy_bytes(model: ModelConfig, size: int) -> int:
    """Bytes of a policy with its trainer's state, for a base of `size` parameters."""
    trained = size if model.adapt == "full" else lora_parameters(size, model.lora)
    return trained * _BYTES_PER_WEIGHT


def round_bytes(study: Study, method: str, size: int) -> int:
    """Bytes of an arm's round: policy, critic, trainer's state and tables of play."""
    training = study.training[method]
    networks = 2 if study.methods[method].uses_critic else 1
    played = training.steps_per_round * training.most_tasks_per_step * training.rollouts_per_task
    longest = study.model.max_length or _LONGEST
    if study.model.tiny is not None:
        longest = min(longest, study.model.tiny.max_positions)
    return networks * policy_bytes(study.model, size) + played * longest * _BYTES_PER_TOKEN


def parameters(model: ModelConfig) -> int | None:
    """About how many parameters a base has; None if neither its files nor its name say it.

    A built model gets the largest vocabulary that it may have. Weights in a folder count as 16 bits
    each. Without the folder, the number in a name counts, such as 1.5B or 135m.
    """
    if model.tiny is not None:
        return tiny_parameters(model.tiny)
    if model.path is not None and (there := _weight_bytes(model.path)):
        return there // 2
    named = (Path(model.path).name if model.path else "", model.name)
    return _first(_named_size(name) for name in named)


def tiny_parameters(tiny: TinyModel) -> int:
    """Parameters of a Qwen2 whose head is its embedding, with `max_vocab` tokens."""
    width, keys = tiny.hidden_size, tiny.hidden_size // tiny.heads * tiny.kv_heads
    attention = 2 * width * width + 2 * width * keys + width + 2 * keys  # the last are biases
    layer = attention + 3 * width * tiny.intermediate_size + 2 * width
    return tiny.max_vocab * width + tiny.layers * layer + width


def lora_parameters(size: int, lora: LoraConfig) -> int:
    """A bound of an adapter's parameters for a base of `size` parameters.

    A module of n inputs and m outputs gets rank * (n + m) parameters.
    """
    widths = sum(_ATTENTION.get(target, _FEED_FORWARD) for target in lora.targets)
    return math.ceil(lora.rank * widths * _SHAPE * math.sqrt(size))


def _weight_bytes(path: str) -> int:
    try:
        return sum(file.stat().st_size for file in user_path(path, "path").glob("*.safetensors"))
    except (UserError, OSError):
        return 0


def _named_size(name: str) -> int | None:
    found = _SIZE_IN_NAME.search(name.lower())
    return int(float(found[1]) * {"b": 1e9, "m": 1e6}[found[2]]) if found else None


def _first(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)
