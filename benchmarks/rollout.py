"""Rollout: our engine against a loop over Hugging Face's `generate`, the same episodes.

Both play 128 episodes of at most 12 turns with the same weights, at temperature 1, on one thread.
The loop is the usual one: every turn, all live conversations are padded on the left and given to
`generate`, which computes their whole prefix again. Counted are sampled tokens (closing token
included) per second of process time.
"""

import json
import sys
import time
from pathlib import Path

import torch
from laptop import Laptop, prepare
from transformers.utils import logging

from hgrpo.agent.conversation import Conversation
from hgrpo.envs.make import env_factory

EPISODES, TURNS, REPLY, REPEATS = 128, 12, 12, 3


def ours(laptop: Laptop) -> tuple[int, int]:
    """Sampled tokens and turns of 128 episodes."""
    flat = laptop.play(laptop.policy(), EPISODES, TURNS, REPLY)
    return sum(t.action_tokens for t in flat), sum(len(t.turns) for t in flat)


def generate_loop(laptop: Laptop) -> tuple[int, int]:
    """The same with `generate`."""
    policy = laptop.policy()
    conversation = Conversation(policy.tokenizer)
    make_env = env_factory(laptop.env, laptop.folder / "assets")
    envs = [make_env() for _ in range(EPISODES)]
    pairs = zip(envs, laptop.tasks, strict=False)
    prefixes = [conversation.opening(env.reset(task).text) for env, task in pairs]
    live = list(range(EPISODES))
    tokens = turns = 0
    for _ in range(TURNS):
        longest = max(len(prefixes[i]) for i in live)
        ids = torch.zeros(len(live), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, i in enumerate(live):
            ids[row, longest - len(prefixes[i]) :] = torch.tensor(prefixes[i])
            mask[row, longest - len(prefixes[i]) :] = 1
        with torch.inference_mode():
            out = policy.causal_lm.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                max_new_tokens=REPLY,
                eos_token_id=conversation.end_id,
                pad_token_id=0,
            )
        still = []
        for row, i in enumerate(live):
            reply = out[row, longest:].tolist()
            if conversation.end_id in reply:
                reply = reply[: reply.index(conversation.end_id) + 1]
            tokens += len(reply)
            turns += 1
            step = envs[i].step(conversation.command(reply))
            if not step.done:
                prefixes[i] += reply + conversation.observation(step.observation.text)
                still.append(i)
        live = still
        if not live:
            break
    return tokens, turns


def measure(laptop: Laptop) -> dict:
    """Median over alternating repeats, and the ratio pair by pair."""
    rows: dict[str, list[float]] = {"ours": [], "generate": []}
    sampled: dict[str, tuple[int, int]] = {}
    for play in (ours, generate_loop):
        play(laptop)  # compiles games, warms caches
    for _ in range(REPEATS):
        for name, play in (("ours", ours), ("generate", generate_loop)):
            began = time.process_time()
            sampled[name] = play(laptop)
            rows[name].append(sampled[name][0] / (time.process_time() - began))
    ratios = sorted(a / b for a, b in zip(rows["ours"], rows["generate"], strict=True))
    return {
        "ours_tokens_per_cpu_s": sorted(rows["ours"])[REPEATS // 2],
        "generate_tokens_per_cpu_s": sorted(rows["generate"])[REPEATS // 2],
        "ratio": ratios[REPEATS // 2],
        "ratio_range": [ratios[0], ratios[-1]],
        "ours_tokens_turns": sampled["ours"],
        "generate_tokens_turns": sampled["generate"],
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    print(json.dumps(measure(prepare(Path(sys.argv[1])))))
