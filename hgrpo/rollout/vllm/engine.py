"""The in-process vLLM rollout engine, which uses a GPU if available.

This module is written for vLLM 0.32.0. vLLM runs without a tokenizer, because requests and replies
are tokens. After every update, the trainer's weights are copied into vLLM's weights in place. LoRA
adapters are merged into the weights, because a separate adapter reduces vLLM's throughput by more
than half.

If the model ties its embeddings to the output projection, vLLM loads them untied, as two separate
tensors. vLLM's CPU build packs the output projection into its own layout on loading. With tied
tensors, vLLM would not repack the projection after an update, and would not report an error.
"""

import copy
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.policy.load import SavedPolicy
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import Completion, Request, Sampling
from hgrpo.rollout.vllm import INSTALL, Settings

if TYPE_CHECKING:
    from transformers import PretrainedConfig
    from vllm.v1.engine.llm_engine import LLMEngine

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
# Tokens per cache block on the CPU. vLLM reuses only whole blocks of a prefix, and short
# conversations do not fill the default block of 128. The CPU kernels require multiples of 32.
_CPU_BLOCK = 32
_CUT = "length"


class VllmEngine:
    """A `RolloutEngine` based on vLLM. A reply's seed is derived from its stream and position.

    The engine cannot pool hidden states; assigners compute embeddings with the trainer's model.
    """

    embeddings = False

    def __init__(
        self, policy: Policy | SavedPolicy, capacity: int, sampling: Sampling, settings: Settings
    ):
        self.capacity = capacity
        self.sampling = sampling
        self.end_id = policy.conversation.end_id
        self.dtype = getattr(torch, settings.dtype)
        self.max_length = settings.max_length or policy.architecture.max_position_embeddings
        self._open: set[int] = set()
        self._active: set[int] = set()
        self._asleep = False
        self._llm = _start(policy.architecture, capacity, self.max_length, settings)
        self.load_weights(policy)

    def load_weights(self, policy: Policy | SavedPolicy) -> None:
        """Load the policy's current weights and close all conversations.

        Raises:
            RuntimeError: vLLM did not reset the KV cache of the old weights.
        """
        self._stop(self._active)
        self._open.clear()
        if self._asleep:
            self._llm.wake_up(["weights"])
        self._llm.collective_rpc(
            "reload_weights", kwargs={"weights_iterator": _untied(policy.merged_weights())}
        )
        if self._asleep:
            self._llm.wake_up(["kv_cache"])
            self._asleep = False
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not reset its prefix cache after a weight update")

    def submit(self, request: Request) -> None:
        from vllm import SamplingParams
        from vllm.inputs.engine import tokens_input
        from vllm.sampling_params import RequestOutputKind

        name, length = request.conversation, len(request.prefix)
        if name not in self._open and len(self._open) >= self.capacity:
            raise RuntimeError(f"all {self.capacity} slots of the engine are in use")
        if length + self.sampling.max_tokens > self.max_length:
            raise RuntimeError(
                f"conversation {name}: {length} tokens plus a reply of {self.sampling.max_tokens} "
                f"exceed max_length {self.max_length}"
            )
        parameters = SamplingParams(
            temperature=self.sampling.temperature,
            max_tokens=self.sampling.max_tokens,
            seed=key("vllm", request.stream, length) % 2**63,
            stop_token_ids=[self.end_id],
            ignore_eos=True,
            detokenize=False,
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        self._open.add(name)
        self._active.add(name)
        self._llm.add_request(str(name), tokens_input(list(request.prefix)), parameters)

    def release(self, conversation: int) -> None:
        """Close a conversation. vLLM may keep the cached prefix for use in other conversations."""
        self._open.remove(conversation)
        self._stop(self._active & {conversation})

    def step(self) -> list[Completion]:
        if not self._active:
            return []
        return [self._complete(output) for output in self._llm.step() if output.finished]

    def sleep(self) -> None:
        """Close all conversations and free the GPU's memory until the next `load_weights`.

        Without a GPU no memory is freed.
        """
        self._stop(self._active)
        self._open.clear()
        if self._llm.model_config.enable_sleep_mode and not self._asleep:
            # Level 2 also drops the weights, because `load_weights` loads new ones anyway.
            self._llm.sleep(level=2)
            self._asleep = True

    def _complete(self, output) -> Completion:
        (reply,) = output.outputs
        name, tokens = int(output.request_id), list(reply.token_ids)
        self._active.discard(name)
        if reply.finish_reason not in ("stop", _CUT):
            raise RuntimeError(f"unexpected finish reason of vLLM: {reply.finish_reason!r}")
        logprobs = [
            ranked[token].logprob for ranked, token in zip(reply.logprobs, tokens, strict=True)
        ]
        return Completion(name, tokens, logprobs, reply.finish_reason == _CUT)

    def _stop(self, conversations: set[int]) -> None:
        if conversations:
            self._llm.abort_request([str(name) for name in conversations])
            self._active -= conversations


def _untied(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights. If embeddings are tied, also yield them as the output projection."""
    yield from weights.items()
    if _HEAD not in weights:
        yield _HEAD, weights[_EMBEDDING]


def _start(
    architecture: "PretrainedConfig", capacity: int, max_length: int, settings: Settings
) -> "LLMEngine":
    for name, value in {
        # vLLM reads these variables on import. Multiprocessing is disabled, so that new weights
        # can be passed in memory.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }.items():
        os.environ.setdefault(name, value)
    try:
        from vllm.engine.arg_utils import EngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.llm_engine import LLMEngine
    except ImportError as error:
        raise UserError(f"engine.kind: vllm: {error}; {INSTALL}") from error

    on_cpu = current_platform.is_cpu()
    if on_cpu:
        # Without this setting, vLLM would compile the function that ranks tokens. The ranks are not
        # used here, and compilation takes half a minute and requires a C++ compiler.
        torch.compiler.set_stance("force_eager")
    shared = torch.distributed.is_available() and torch.distributed.is_initialized()
    untied = copy.deepcopy(architecture)
    untied.tie_word_embeddings = False
    untied.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[architecture.model_type]]
    with tempfile.TemporaryDirectory() as folder:
        untied.save_pretrained(folder)
        arguments = EngineArgs(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            generation_config="vllm",
            dtype=settings.dtype,
            max_model_len=max_length,
            max_num_seqs=capacity,
            enable_prefix_caching=True,
            # With chunked prefill, vLLM would reset the reply's random generator. This would change
            # samples, and would raise an error for a CPU generator.
            enable_chunked_prefill=False,
            block_size=_CPU_BLOCK if on_cpu else None,
            gpu_memory_utilization=settings.gpu_memory_utilization,
            kv_cache_memory_bytes=settings.cpu_cache_gb * 2**30 if on_cpu else None,
            enforce_eager=on_cpu,
            enable_sleep_mode=current_platform.is_sleep_mode_available(),
            # Record log-probs of the sampling distribution, after temperature scaling.
            logprobs_mode="processed_logprobs",
            disable_log_stats=True,
            # In distributed training, each process has an engine on its own GPU.
            distributed_executor_backend="external_launcher" if shared else None,
            seed=0,
        )
        set_threads = torch.set_num_threads
        try:
            return LLMEngine.from_engine_args(arguments)
        finally:
            # vLLM's CPU build replaces this function with a no-op.
            torch.set_num_threads = set_threads
