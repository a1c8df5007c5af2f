"""Compare the rollout speed of our engine, of `generate` in transformers, and of vLLM.

Our engine is measured in its plain and in its compiled version.

All engines play 128 episodes of at most 12 turns, with the same weights, at temperature 1 and on
one thread. The first setting has groups of 8 episodes on 16 games, as in training. The second
setting has one episode on each of 128 games. vLLM is included if it is installed. All engines use
float32.

In the baseline with `generate`, all unfinished conversations are left-padded at every turn and
passed to `generate`, which processes each conversation from its beginning.

The result is the number of sampled tokens, including end-of-turn tokens, per second of process
time. The time to load the model is excluded. The time to copy the policy's weights into an engine
is included, because training copies them after every update. The engines also play 128 episodes
with greedy decoding, and the benchmark counts the trajectories that are identical to those of our
plain engine.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path

import torch
from laptop import COMPILED, PLAIN, Laptop, prepare
from transformers.utils import logging

from hgrpo.agent.conversation import Conversation
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.settings import EngineConfig

EPISODES, TURNS, REPLY, REPEATS = 128, 12, 12, 3
GROUPS = (8, 1)
# Pairs of engines that are compared.
PAIRS = (("plain", "generate"), ("compiled", "generate"), ("plain", "vllm"))


class Ours:
    """Plays episodes with our collector and one engine. All measurements reuse this object."""

    def __init__(self, laptop: Laptop, policy: Policy, engine: EngineConfig):
        self._tasks, self._policy = laptop.tasks, policy
        self._collector = laptop.collector(policy, EPISODES, TURNS, REPLY, engine)

    def play(self, rollouts: int) -> tuple[int, int]:
        """Play 128 episodes, `rollouts` on each game; return the numbers of tokens and turns."""
        self._collector.engine.load_weights(self._policy)
        groups = self._collector.collect(self._tasks[: EPISODES // rollouts], rollouts, ("bench",))
        flat = [trajectory for group in groups for trajectory in group]
        return sum(t.action_tokens for t in flat), sum(len(t.turns) for t in flat)

    def greedy(self) -> list[list[int]]:
        """Tokens of one greedy trajectory on each of 128 games."""
        self._collector.engine.sampling = Sampling(0.0, REPLY)
        groups = self._collector.collect(self._tasks[:EPISODES], 1, ("bench",))
        self._collector.engine.sampling = Sampling(1.0, REPLY)
        return [group[0].token_ids for group in groups]


class GenerateLoop:
    """Plays the same episodes with Hugging Face's `generate`."""

    def __init__(self, laptop: Laptop, policy: Policy):
        self._tasks, self._policy = laptop.tasks, policy
        self._conversation = Conversation(policy.tokenizer)
        make_env = laptop.make_env()
        self._envs = [make_env() for _ in range(EPISODES)]

    def play(self, rollouts: int) -> tuple[int, int]:
        """Play 128 episodes, `rollouts` on each game; return the numbers of tokens and turns."""
        conversation, envs = self._conversation, self._envs
        tasks = [self._tasks[episode // rollouts] for episode in range(EPISODES)]
        pairs = zip(envs, tasks, strict=True)
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
                out = self._policy.causal_lm.generate(
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


def measure(laptop: Laptop) -> list[dict]:
    """Time all engines alternately for each group size; return medians over the repeats."""
    policy = laptop.policy()
    kinds = {"plain": PLAIN, "compiled": COMPILED}
    if importlib.util.find_spec("vllm"):
        # Start vLLM first, because its CPU build cannot start in a process that has imported numba.
        kinds = {"vllm": EngineConfig(kind="vllm"), **kinds}
    engines = {name: Ours(laptop, policy, kind) for name, kind in kinds.items()}
    greedy = {name: engine.greedy() for name, engine in engines.items()}
    same = {
        name: sum(ours == theirs for ours, theirs in zip(greedy["plain"], played, strict=True))
        for name, played in greedy.items()
    }
    sides = engines | {"generate": GenerateLoop(laptop, policy)}
    return [_measure(sides, rollouts) | {"same_greedy": same} for rollouts in GROUPS]


def _measure(sides: dict, rollouts: int) -> dict:
    rates: dict[str, list[float]] = {name: [] for name in sides}
    sampled: dict[str, tuple[int, int]] = {}
    for side in sides.values():
        side.play(rollouts)  # compiles games and the kernel, and fills caches
    for _ in range(REPEATS):
        for name, side in sides.items():
            began = time.process_time()
            sampled[name] = side.play(rollouts)
            rates[name].append(sampled[name][0] / (time.process_time() - began))
    ratios = {
        f"{ours}/{theirs}": sorted(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))
        for ours, theirs in PAIRS
        if theirs in sides
    }
    return {
        "rollouts_per_game": rollouts,
        "games": EPISODES // rollouts,
        "tokens_per_cpu_s": {name: sorted(rates[name])[REPEATS // 2] for name in sides},
        "tokens_turns": sampled,
        "ratios": ratios,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    print(json.dumps(measure(prepare(Path(sys.argv[1])))))
