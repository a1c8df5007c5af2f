"""The sync canary: after new weights, the engine must say what the trainer says."""

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.policy.logprobs import SequenceBatch, make_batch, sampled_logits, token_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import Request, RolloutEngine
from hgrpo.streams import generator

# Both sides compute in float32; what remains is the order of sums.
_TOLERANCE = 1e-3
_PROBES, _PROBE_TOKENS = 4, 24
_NEARER = 2.0


def check_sync(engine: RolloutEngine, policy: Policy, stream: object) -> dict[str, float | None]:
    """Sample replies to random prefixes and compare their log-probs with the trainer's.

    And with those of the policy as it was before training, which an engine agrees with that never
    took new weights. In a coarse type that shows where the tolerance hides it.

    Returns:
        For the log: `sync_max`, the largest difference of a token's log-prob from the trainer's,
        and `sync_base_max`, from the untrained policy's, None where there is none.

    Raises:
        TrainingError: they differ: the engine does not hold the policy's weights.
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
    own = getattr(torch, policy.config.base_dtype)
    coarser = max(engine.dtype, own, key=lambda dtype: torch.finfo(dtype).eps)
    tolerance = sync_tolerance(coarser, float(logits.abs().max()) / temperature)
    difference = float((trainer - sampled).abs().max())
    if not difference <= tolerance:
        raise TrainingError(
            f"sync canary: engine and trainer differ by {difference:.2e} in log-probability "
            f"(tolerance {tolerance:.0e}); the engine does not hold the policy's weights"
        )
    if base is None:
        return {"sync_max": difference, "sync_base_max": None}
    near, away = (trainer - sampled).abs().mean(), (base - sampled).abs().mean()
    # Where the policy has hardly moved the two are alike, so twice is none of rounding's doing.
    if near > _NEARER * away:
        raise TrainingError(
            f"sync canary: the engine's log-probabilities are {float(away):.2e} from those of the "
            f"untrained policy and {float(near):.2e} from the trainer's; it does not hold the "
            "policy's weights"
        )
    return {"sync_max": difference, "sync_base_max": float((base - sampled).abs().max())}


def sync_tolerance(dtype: torch.dtype, largest: float) -> float:
    """How far apart log-probs may be that were computed in float32 and in `dtype`.

    A unit in the last place of the largest logit, `largest`: 8 bits of bfloat16 leave no more of
    it. Never below what sums in another order make of float32.
    """
    return max(_TOLERANCE, torch.finfo(dtype).eps * largest)


def _probe(engine: RolloutEngine, policy: Policy, stream: object) -> tuple[SequenceBatch, Tensor]:
    """Sampled replies as the trainer reads them, and the engine's log-probs of their tokens."""
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
    batch = make_batch(
        [prefix + replies[name].token_ids for name, prefix in prefixes.items()],
        [
            [(len(prefix), len(prefix) + len(replies[name].token_ids))]
            for name, prefix in prefixes.items()
        ],
        policy.device,
    )
    logprobs = [value for name in prefixes for value in replies[name].logprobs]
    return batch, torch.tensor(logprobs, device=policy.device)
