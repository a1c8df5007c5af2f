"""The sync canary: after new weights, the engine must say what the trainer says."""

import torch

from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import Request, RolloutEngine
from hgrpo.streams import generator

# Both sides compute in float32; what remains is the order of sums.
_TOLERANCE = 1e-3
_PROBE_TOKENS = 24
_CONVERSATION = -1


def check_sync(engine: RolloutEngine, policy: Policy, stream: object) -> None:
    """Sample a reply to a random prefix and compare its log-probs with the trainer's.

    Raises:
        RuntimeError: they differ: the engine does not hold the policy's weights.
    """
    config = policy.causal_lm.config
    rng = generator("sync-canary", stream)
    prefix = rng.integers(0, config.vocab_size, _PROBE_TOKENS).tolist()
    engine.submit(Request(_CONVERSATION, prefix, int(rng.integers(2**63))))
    completions = []
    while not completions:
        completions = engine.step()
    engine.release(_CONVERSATION)
    reply = completions[0]
    batch = make_batch(
        [prefix + reply.token_ids],
        [[(len(prefix), len(prefix) + len(reply.token_ids))]],
        policy.device,
    )
    with torch.no_grad():
        expected, _ = sampled_logprobs(policy.causal_lm, batch, engine.sampling.temperature or 1.0)
    difference = float((expected.cpu() - torch.tensor(reply.logprobs)).abs().max())
    if not difference <= _TOLERANCE:
        raise RuntimeError(
            f"sync canary: engine and trainer differ by {difference:.2e} in log-probability "
            f"(tolerance {_TOLERANCE:.0e}); the engine does not hold the policy's weights"
        )
