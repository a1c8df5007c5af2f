"""Compare updates with one sequence per trajectory and with one sequence per turn.

With one sequence per turn, the model processes the whole preceding conversation again for every
turn. Both variants compute the same loss on the same sampled tokens. The results are the number of
processed tokens, and the process time of forward and backward passes on one thread.
"""

import json
import sys
import time
from pathlib import Path

import torch
from laptop import Laptop, prepare
from transformers.utils import logging

from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.precision import autocast_dtype, cast

TRAJECTORIES, TURNS, REPLY, REPEATS, BUDGET = 64, 12, 12, 3, 2048


def measure(laptop: Laptop) -> dict:
    """Return token counts, ratios of token counts and times, and how much log-prob sums differ."""
    policy = laptop.policy()
    dtype = autocast_dtype(laptop.model, policy.device)
    collector = laptop.collector(policy, TRAJECTORIES, TURNS, REPLY)
    groups = collector.collect(laptop.tasks[:TRAJECTORIES], 1, ("benchmark",))
    flat = [trajectory for group in groups for trajectory in group]
    packed = [(t.token_ids, [turn.span for turn in t.turns]) for t in flat]
    per_turn = [(t.token_ids[: turn.span[1]], [turn.span]) for t in flat for turn in t.turns]

    def passes(sequences: list) -> tuple[float, float]:
        began, total = time.process_time(), 0.0
        for part in micro_batches([len(ids) for ids, _ in sequences], BUDGET):
            batch = make_batch([sequences[i][0] for i in part], [sequences[i][1] for i in part])
            with cast(policy.device, dtype):
                logprobs, _ = sampled_logprobs(policy.causal_lm, batch)
            loss = logprobs.sum()
            loss.backward()
            total += float(loss.detach())
        return time.process_time() - began, total

    passes(packed[:8])
    seconds: dict[str, list[float]] = {"packed": [], "per_turn": []}
    sums = {}
    for _ in range(REPEATS):
        for name, sequences in (("packed", packed), ("per_turn", per_turn)):
            spent, sums[name] = passes(sequences)
            seconds[name].append(spent)
    forwarded = {
        "packed": sum(len(ids) for ids, _ in packed),
        "per_turn": sum(len(ids) for ids, _ in per_turn),
    }
    ratios = sorted(b / a for a, b in zip(seconds["packed"], seconds["per_turn"], strict=True))
    return {
        "turns_per_trajectory": len(per_turn) / len(packed),
        "packed_tokens": forwarded["packed"],
        "per_turn_tokens": forwarded["per_turn"],
        "token_ratio": forwarded["per_turn"] / forwarded["packed"],
        "time_ratio": ratios[REPEATS // 2],
        "logprob_sum_difference": abs(sums["packed"] - sums["per_turn"]) / abs(sums["packed"]),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    print(json.dumps(measure(prepare(Path(sys.argv[1])))))
