"""Sync canary, which checks that the engine's log-probs match the trainer's after an update."""

import math

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.games.streams import generator
from hgrpo.policy.logprobs import SequenceBatch, make_batch, sampled_logits, token_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import base_dtype
from hgrpo.rollout.engine import Request, RolloutEngine

# In float32, the log-probs of engine and trainer differ only because of the summation order.
_TOLERANCE = 1e-3
_PROBES, _PROBE_TOKENS = 4, 24
# In `check_sync`, `near` must not exceed this factor times `away`.
_NEARER = 2.0


def check_sync(engine: RolloutEngine, policy: Policy, stream: object) -> dict[str, float | None]:
    """Sample replies to random prefixes and compare their log-probs with the trainer's.

    Call this right after the engine has loaded the policy's weights. `stream` is the name of the
    random stream for the prefixes and replies. The log-probs are also compared with those of the
    untrained policy. Without this comparison, an engine that never loads new weights could pass,
    because the tolerance is large in a low-precision dtype.

    Returns:
        Log entries with the maximum absolute difference in log-prob over tokens: `sync_max` between
        engine and trainer, and `sync_base_max` between engine and untrained policy. The latter is
        None if no untrained policy is available.

    Raises:
        TrainingError: the engine's log-probs differ from the trainer's by more than the tolerance,
            or are much closer to those of the untrained policy.
    """
    batch, sampled = _probe(engine, policy, stream)
    temperature = engine.sampling.temperature or 1.0
    with torch.no_grad():
        logits = sampled_logits(policy.causal_lm, batch)
        trainer = token_logprobs(logits, batch, temperature)
        base = None
        with policy.untrained() as model:
            if model is not None:
                base = token_logprobs(sampled_logits(model, batch), batch, temperature)
    types = engine.dtype, base_dtype(policy.config)
    coarser = max(types, key=lambda dtype: torch.finfo(dtype).eps)
    layers = policy.architecture.num_hidden_layers
    tolerance = sync_tolerance(coarser, float(logits.abs().max()) / temperature, layers)
    difference = float((trainer - sampled).abs().max())
    if not difference <= tolerance:
        raise TrainingError(
            f"sync canary: engine and trainer log-probabilities differ by {difference:.2e} "
            f"(tolerance {tolerance:.0e}); the engine does not hold the policy's weights"
        )
    if base is None:
        return {"sync_max": difference, "sync_base_max": None}
    near, away = (trainer - sampled).abs().mean(), (base - sampled).abs().mean()
    # If the policy has hardly changed, `near` and `away` are only rounding errors, and either may
    # be larger. The factor allows for this.
    if near > _NEARER * away:
        raise TrainingError(
            "sync canary: the engine's log-probabilities differ by only "
            f"{float(away):.2e} from the untrained policy's, but by {float(near):.2e} from the "
            "trainer's; the engine does not hold the policy's weights"
        )
    return {"sync_max": difference, "sync_base_max": float((base - sampled).abs().max())}


def sync_tolerance(dtype: torch.dtype, largest: float, layers: int) -> float:
    """Return the tolerance for the difference in log-probs of two implementations in `dtype`.

    Each layer adds two terms to the hidden states, and each sum is rounded. The rounding errors
    accumulate like a random walk: the sum of n errors is about sqrt(n) times one error. See Higham
    and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis",
    https://doi.org/10.1137/18M1226312. One rounding changes a logit by up to about eps * largest.
    For a random model of Qwen2.5-1.5B's shape (largest logit 3.8), the tolerance is 0.22; the
    difference on an H100 was 0.07.

    Args:
        largest: the largest absolute logit.
        layers: number of layers of the model.

    Returns:
        eps * largest * sqrt(2 * layers), but at least `_TOLERANCE`, the effect of the summation
        order in float32.
    """
    return max(_TOLERANCE, torch.finfo(dtype).eps * largest * math.sqrt(2 * layers))


def _probe(engine: RolloutEngine, policy: Policy, stream: object) -> tuple[SequenceBatch, Tensor]:
    rng = generator("sync-canary", stream)
    size = policy.architecture.vocab_size
    prefixes = {}
    for name in range(-min(_PROBES, engine.capacity), 0):
        prefixes[name] = rng.integers(0, size, _PROBE_TOKENS).tolist()
        engine.submit(Request(name, prefixes[name], int(rng.integers(2**63))))
    replies = {}
    while len(replies) < len(prefixes):
        replies |= {reply.conversation: reply for reply in engine.step()}
    for name in prefixes:
        engine.release(name)
    sequences = [prefix + replies[name].token_ids for name, prefix in prefixes.items()]
    spans = [[(_PROBE_TOKENS, len(sequence))] for sequence in sequences]
    batch = make_batch(sequences, spans, policy.device)
    logprobs = [value for name in prefixes for value in replies[name].logprobs]
    return batch, torch.tensor(logprobs, device=policy.device)
