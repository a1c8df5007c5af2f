"""Forward pass over rows of different lengths, with a static KV cache, for Qwen2 and Llama models.

A row is one conversation. Linear layers process the packed new tokens of all rows. Attention uses
each row's part of the cache, see attention.py and compiled.py.
"""

import math
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from hgrpo.errors import UserError
from hgrpo.rollout.torch.attention import Attends, GroupedAttention, Row

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from hgrpo.base_model.architecture import PlainConfig

_SUPPORTED = ("qwen2", "llama")
# With MAP_PRIVATE, a forked process does not share its parent's cache. Windows lacks this flag.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def check_supported(config: "PlainConfig | PretrainedConfig") -> None:
    """Check that the decoder supports models with this config.

    Raises:
        UserError: the model is unsupported; the message contains the config key.
    """
    if config.model_type not in _SUPPORTED:
        raise UserError(
            f"model_type: {config.model_type!r}: the torch engine supports {', '.join(_SUPPORTED)}"
        )
    rope = config.rope_parameters or {}
    if rope.get("rope_type", "default") != "default":
        raise UserError(
            f"rope_type: {rope['rope_type']!r}: the torch engine supports plain RoPE only"
        )
    if config.hidden_act not in ("silu", "swish"):
        raise UserError(f"hidden_act: {config.hidden_act!r}: the torch engine supports silu only")
    # Among the supported types, only Qwen2 has layers with a sliding window.
    windows = config.model_type == "qwen2" and "sliding_attention" in (config.layer_types or ())
    # Also reject a missing window size, because transformers cannot run such layers without one.
    if windows and (config.sliding_window or 0) < config.max_position_embeddings:
        raise UserError(
            f"sliding_window: {config.sliding_window} of {config.max_position_embeddings} "
            "positions: the torch engine does not support sliding windows; set `max_length` to at "
            "most the size of the window, so that the window has no effect"
        )


@dataclass(frozen=True)
class Branch:
    """A row's trunk: cache row `slot`, whose first `length` positions are the row's prefix."""

    slot: int
    length: int


class Decoder:
    """The model's weights as plain tensors, and a KV cache of [slots, max_length] positions.

    Weights and cache are float32 on `device`.

    Args:
        compiled: whether attention uses the kernel in compiled.py.

    Raises:
        UserError: the model is unsupported, the cache does not fit in memory, or `compiled` is set
            for a device other than the CPU.
    """

    def __init__(
        self,
        config: "PlainConfig | PretrainedConfig",
        slots: int,
        max_length: int,
        device: torch.device,
        compiled: bool = False,
    ):
        check_supported(config)
        self.config = config
        self.max_length = max_length
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        # A Qwen2 config has `head_dim` only if its file sets it.
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps = config.rms_norm_eps
        self.device = device
        self._attends = _attends(compiled, device)
        cos, sin = _rope_table(config, self.head_dim, max_length)
        self._rope = cos.to(device), sin.to(device)
        self._weights: dict[str, Tensor] = {}
        shape = config.num_hidden_layers, slots, self.kv_heads, max_length, self.head_dim
        try:
            self._keys, self._values = _cache(shape, device), _cache(shape, device)
        except (OSError, torch.OutOfMemoryError):
            room = 2 * math.prod(shape) * torch.float32.itemsize
            raise UserError(
                f"not enough memory for a cache of {slots} conversations of {max_length} tokens "
                f"({room / 2**30:.0f} GiB); reduce `in_flight` of training and evaluation in the "
                "study, or `max_length` of the model"
            ) from None

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Load new weights, keyed by their names in the base model.

        Raises:
            UserError: a tensor is unexpected.
        """
        # Free the old weights first, so that old and new weights are not in memory together.
        self._weights = fused = {}
        unknown = set(weights)

        def take(name: str, *sources: str) -> None:
            for suffix, kind in (("", "weight"), (".bias", "bias")):
                keys = [f"{source}.{kind}" for source in sources]
                if kind == "weight" or (keys[0] in weights and keys[0].endswith("_proj.bias")):
                    fused[name + suffix] = self._copied(*(weights[key] for key in keys))
                    unknown.difference_update(keys)

        for layer in range(self.config.num_hidden_layers):
            prefix = f"model.layers.{layer}"
            attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
            # Fuse q, k and v into one weight matrix, and gate and up into another. In small models,
            # a call takes longer than its arithmetic, so fewer products are faster.
            take(f"{layer}.qkv", *(f"{attention}.{part}_proj" for part in "qkv"))
            take(f"{layer}.gate_up", f"{mlp}.gate_proj", f"{mlp}.up_proj")
            take(f"{layer}.o", f"{attention}.o_proj")
            take(f"{layer}.down", f"{mlp}.down_proj")
            take(f"{layer}.norm1", f"{prefix}.input_layernorm")
            take(f"{layer}.norm2", f"{prefix}.post_attention_layernorm")
        take("embed", "model.embed_tokens")
        take("norm", "model.norm")
        if self._is_tied(weights):
            fused["head"] = fused["embed"]
            unknown.discard("lm_head.weight")
        else:
            take("head", "lm_head")
        if unknown:
            raise UserError(f"tensor {min(unknown)!r}: not supported by the torch engine")

    def _is_tied(self, weights: Mapping[str, Tensor]) -> bool:
        """Whether head and embeddings have equal weights. An adapter may have changed only one."""
        if not self.config.tie_word_embeddings:
            return False
        head = weights.get("lm_head.weight")
        return head is None or torch.equal(head, weights["model.embed_tokens.weight"].to(head))

    def _copied(self, *weights: Tensor) -> Tensor:
        return torch.cat([weight.to(self.device, torch.float32) for weight in weights])

    @torch.inference_mode()
    def copy_prefix(self, source: int, targets: list[int], length: int) -> None:
        """Copy the first `length` positions of cache row `source` into the rows `targets`."""
        for cache in (self._keys, self._values):
            cache[:, targets, :, :length] = cache[:, source : source + 1, :, :length]

    @torch.inference_mode()
    def forward(
        self,
        slots: list[int],
        tokens: list[list[int]],
        starts: list[int],
        sums: bool = False,
        branches: Sequence[Branch | None] = (),
    ) -> tuple[Tensor, Tensor | None]:
        """Process each row's new tokens and return the logits after the last one.

        Args:
            slots: index of each row in the cache; all different.
            tokens: one or more new tokens of each row.
            starts: position of each row's first new token; earlier positions must be in the cache.
            sums: whether to also return sums of hidden states.
            branches: the branch of each row, or None for a row without a trunk; () if no row has a
                trunk. Rows of the same trunk must be adjacent.

        Returns:
            Logits, float32 [rows, vocabulary], on the decoder's device. With `sums`, the last
            layer's hidden states summed over each row's new tokens, float32 [rows, hidden size],
            on the CPU; otherwise None.

        Raises:
            RuntimeError: a row would exceed `max_length`.
        """
        w = self._weights
        longest = max(s + len(t) for s, t in zip(starts, tokens, strict=True))
        if longest > self.max_length:
            raise RuntimeError(
                f"position {longest} exceeds the model's max_length of {self.max_length}"
            )
        counts = torch.tensor([len(t) for t in tokens])
        flat = torch.tensor([i for row in tokens for i in row])
        ends = counts.cumsum(0)
        rows = _rows(slots, tokens, starts, ends, branches)
        row_of = torch.repeat_interleave(torch.arange(len(tokens)), counts)
        within = torch.arange(len(flat)) - (ends - counts)[row_of]
        positions = torch.tensor(starts)[row_of] + within
        attention = self._attends(rows, positions, self._rope)
        flat, ends, row_of = (t.to(self.device) for t in (flat, ends, row_of))
        x = w["embed"][flat]
        layers = self.config.num_hidden_layers
        # If all rows are branches, compute the last layer only for each row's last token.
        # Otherwise, compute it for all tokens, because different shapes would change rounding and
        # therefore the rollouts of existing studies.
        lean = not sums and len(branches) > 0 and all(branches)
        for layer in range(layers - lean):
            x = self._layer(layer, x, attention)
        if lean:
            x = self._layer(layers - 1, x, attention, ends - 1)
        if not sums:
            last = F.rms_norm(x if lean else x[ends - 1], (x.shape[-1],), w["norm"], self.eps)
            return F.linear(last, w["head"]), None
        x = F.rms_norm(x, (x.shape[-1],), w["norm"], self.eps)
        total = torch.zeros(len(tokens), x.shape[-1], device=self.device)
        total.index_add_(0, row_of, x)
        return F.linear(x[ends - 1], w["head"]), total.cpu()

    def _layer(
        self, layer: int, x: Tensor, attention: Attends, last: Tensor | None = None
    ) -> Tensor:
        """Apply one layer to hidden states [tokens, hidden size], and extend the cache.

        Args:
            last: indices of tokens. If given, only the hidden states of these tokens are returned.
        """
        w = self._weights
        q_size = self.heads * self.head_dim
        h = F.rms_norm(x, (x.shape[-1],), w[f"{layer}.norm1"], self.eps)
        weight, bias = w[f"{layer}.qkv"], w.get(f"{layer}.qkv.bias")
        if last is None:
            qkv = F.linear(h, weight, bias)
            q, kv = qkv[:, :q_size], qkv[:, q_size:]
        else:
            q = F.linear(h[last], weight[:q_size], None if bias is None else bias[:q_size])
            kv = F.linear(h, weight[q_size:], None if bias is None else bias[q_size:])
            x = x[last]
        q = q.view(-1, self.heads, self.head_dim)
        kv = kv.view(-1, 2, self.kv_heads, self.head_dim)
        attended = attention.attend(q, kv, self._keys[layer], self._values[layer])
        x = x + F.linear(attended.view(-1, q_size), w[f"{layer}.o"], w.get(f"{layer}.o.bias"))
        h = F.rms_norm(x, (x.shape[-1],), w[f"{layer}.norm2"], self.eps)
        both = F.linear(h, w[f"{layer}.gate_up"], w.get(f"{layer}.gate_up.bias"))
        gate, up = both.chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, w[f"{layer}.down"], w.get(f"{layer}.down.bias"))


def _attends(
    compiled: bool, device: torch.device
) -> Callable[[list[Row], Tensor, tuple[Tensor, Tensor]], Attends]:
    """Return the class that computes the attention of a forward pass."""
    if not compiled:
        return GroupedAttention
    if device.type != "cpu":
        raise UserError(f"`engine.compiled` requires a CPU, but the policy is on {device}")
    from hgrpo.rollout.torch.compiled import CompiledAttention

    return CompiledAttention


def _rows(
    slots: list[int],
    tokens: list[list[int]],
    starts: list[int],
    ends: Tensor,
    branches: Sequence[Branch | None],
) -> list[Row]:
    offsets = [0, *ends.tolist()[:-1]]
    lengths = map(len, tokens)
    if not branches:
        return list(map(Row, slots, offsets, lengths, starts))
    return [
        Row(slot, offset, length, start - branch.length, branch.slot, branch.length)
        if branch
        else Row(slot, offset, length, start)
        for slot, offset, length, start, branch in zip(
            slots, offsets, lengths, starts, branches, strict=True
        )
    ]


def _cache(shape: tuple[int, ...], device: torch.device) -> Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, device=device)
    # The operating system allocates these zero-filled pages on first use. Unused positions take no
    # memory, and the cache never has to grow. Huge pages are disabled, because with huge pages the
    # first token of a row would allocate the whole row.
    room = mmap.mmap(-1, torch.float32.itemsize * math.prod(shape), **_PRIVATE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        room.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(room, dtype=torch.float32).view(shape)


def _rope_table(
    config: "PlainConfig | PretrainedConfig", dim: int, length: int
) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary embeddings, [length, dim] each.

    "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    https://arxiv.org/abs/2104.09864.
    """
    theta = (config.rope_parameters or {}).get("rope_theta") or 10_000.0
    inverse = theta ** -(torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * inverse
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()
