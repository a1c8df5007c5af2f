"""How much disk a study still takes: an estimate from its settings, before any job has run.

Policies take nearly all of it: every round keeps its own, with the optimiser's state. Once jobs
have finished, `make plan` gives a closer number.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hgrpo.base_model.settings import TinyModel
from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError
from hgrpo.policy.settings import LoraConfig, ModelConfig
from hgrpo.stages.files import round_folder, trained_rounds
from hgrpo.study.study import Study

# Each round keeps four numbers of 32 bits for a trained weight: the weight in the policy, and in
# the trainer's state the weight again, with two moments.
_BYTES_PER_WEIGHT = 16
# A base's weights in 16 bits.
_BYTES_PER_BASE_WEIGHT = 2
# Tables of play, for each token of the longest conversation. Most are shorter, and the tables are
# compressed: those of `bakeoff_plateau` hold 1 byte.
_BYTES_PER_TOKEN = 2
_LONGEST = 8192  # tokens, where the model's file does not say
# Games, fits, evaluations, logs and pages.
_OTHERS = 10**9
# Inputs plus outputs of a module, in units of the model's width. Modules of feed-forward layers
# have the most.
_ATTENTION = dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), 2)
_FEED_FORWARD = 7
# Width times layers, divided by the square root of the parameters: between 0.9 and 1.5 for
# SmolLM2-135M and for Qwen2.5 from 0.5B to 7B.
_SHAPE = 1.5
_SIZE_IN_NAME = re.compile(r"(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


@dataclass(frozen=True)
class DiskNeed:
    """What a study will still write.

    Attributes:
        rounds: rounds that are not there yet.
        round_bytes: bytes that a round keeps; None if the model's size is not known.
        shared_bytes: bytes of all other stages, with a copy of a base model from elsewhere.
    """

    rounds: int
    round_bytes: int | None
    shared_bytes: int

    @property
    def bytes(self) -> int:
        """All of it. Two more rounds stand for the SFT policy and for an unfinished round."""
        more = (self.rounds + 2) * (self.round_bytes or 0) if self.rounds else 0
        return more + self.shared_bytes


def disk_need(study: Study, results: Path) -> DiskNeed:
    """What the study will still write, estimated from above.

    Args:
        study: the study to run.
        results: results/<study>; rounds that are there count no more.
    """
    model = study.model
    left = [
        method
        for method, seed, number in trained_rounds(study)
        if not (results / round_folder("rl", method, seed, number) / "summary.json").is_file()
    ]
    size = parameters(model)
    if size is None:
        return DiskNeed(len(left), None, _OTHERS)
    base = 0 if model.tiny else size * _BYTES_PER_BASE_WEIGHT
    trained = size if model.adapt == "full" else lora_parameters(size, model.lora)
    largest = max((_round_bytes(study, method, trained) for method in set(left)), default=0)
    return DiskNeed(len(left), largest, base + _OTHERS)


def _round_bytes(study: Study, method: str, trained: int) -> int:
    """What a round of an arm keeps: policy, critic and the trainer's state, and tables of play."""
    training = study.training[method]
    networks = 2 if study.methods[method].uses_critic else 1
    played = training.steps_per_round * training.most_tasks_per_step * training.rollouts_per_task
    longest = study.model.max_length or _LONGEST
    if study.model.tiny is not None:
        longest = min(longest, study.model.tiny.max_positions)
    return networks * trained * _BYTES_PER_WEIGHT + played * longest * _BYTES_PER_TOKEN


def parameters(model: ModelConfig) -> int | None:
    """About how many parameters a base has; None if neither its files nor its name say it.

    A built model gets the largest vocabulary that it may have. Weights in a folder count as 16 bits
    each. Without the folder, the number in a name counts, such as 1.5B or 135m.
    """
    if model.tiny is not None:
        return tiny_parameters(model.tiny)
    if model.path is not None and (there := _weight_bytes(model.path)):
        return there // _BYTES_PER_BASE_WEIGHT
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
