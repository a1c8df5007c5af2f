"""A game of up to five turns, small enough that a policy's value can be computed by enumeration."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from toy_teacher import teach

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.archive import pack
from hgrpo.base_model.make import build_tiny
from hgrpo.base_model.settings import TinyModel
from hgrpo.games.base import Observation, Step, Task
from hgrpo.games.kinds import load
from hgrpo.games.panels import write_panels
from hgrpo.policy.load import load_policy
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine

COLOURS = ("red", "green", "blue")
GOAL = "light the lamps."
OPENING = "A row of lamps is dark. Your task is to: light the lamps."
TURN_CAP, MAX_TOKENS = 5, 4
TEXTS = [OPENING, *COLOURS, *(f"The lamp glows {colour}." for colour in COLOURS), "Nothing."]


class LampEnv:
    """A colour a turn, for as many turns as the task's id says.

    Red pays 0.25 at once. After the last turn an odd number of greens pays 1. A second blue ends
    the game, and so does any other word.
    """

    def reset(self, task: Task) -> Observation:
        self._left = int(task.task_id[-1])
        self._seen: list[str] = []
        return Observation(GOAL, OPENING)

    def step(self, action: str) -> Step:
        known = action in COLOURS
        self._seen += [action]
        self._left -= 1
        over = not known or self._seen.count("blue") == 2
        paid = 0.25 * (action == "red")
        if not self._left and not over:
            paid += self._seen.count("green") % 2
        done = over or not self._left
        text = f"The lamp glows {action}." if known else "Nothing."
        return Step(Observation(GOAL, text), paid, 0.0, done, False, {"admissible": known})

    def situation(self) -> tuple[str, str]:
        return " ".join(self._seen), "colours"

    def admissible_commands(self) -> list[str]:
        return list(COLOURS)


def lamp_tasks(number: int) -> list[Task]:
    """Tasks of five, four and three turns."""
    return [
        Task(f"lamps-{i}-{5 - i % 3}", f"lamps-{i}", f"hash-{i}", "lamps") for i in range(number)
    ]


def make_lamp_policy(folder: Path) -> Policy:
    """A policy that names colours, some more often than others; its base is written to `folder`."""
    tiny = TinyModel(
        hidden_size=32, layers=2, heads=4, kv_heads=2, intermediate_size=48, max_vocab=300
    )
    config = ModelConfig(name="lamps", tiny=tiny, adapt="full", train_dtype="float32")
    tokenizer = train_tokenizer(TEXTS * 3, tiny.max_vocab, load("alfworld").cut)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    Policy(build_tiny(tiny, tokenizer, seed=1), config, folder).save_adapter(folder)
    policy = load_policy(config, folder)

    def game(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
        for colour in rng.choice(COLOURS, TURN_CAP, p=[0.5, 0.3, 0.2]):
            yield colour, f"The lamp glows {colour}."

    teach(policy, OPENING, game, "lamp-teacher", epochs=6)
    return policy


def write_lamp_study(root: Path, games: int) -> Policy:
    """Write base, policy, panels and tasks to `root`; all games but two are for training."""
    policy = make_lamp_policy(root / "base")
    policy.save_adapter(root / "policy")
    (root / "assets").mkdir()
    tasks = lamp_tasks(games)
    panels = {"train": tasks[:-2], "validation": tasks[-2:-1], "test": tasks[-1:]}
    write_panels(root / "assets/panels.json", panels)
    pack(root / "assets", [], root / "assets/tasks.tar.gz")
    return policy


def lamp_collector(policy: Policy, capacity: int = 128) -> Collector:
    """Plays the game at temperature 1."""
    engine = TorchEngine(policy, capacity, Sampling(1.0, MAX_TOKENS))
    return Collector(engine, policy.conversation, LampEnv, TURN_CAP, MAX_TOKENS)


@dataclass
class Node:
    """A history before a turn; `value` and `square` are moments of what is still to be paid."""

    colours: tuple[str, ...]
    tokens: list[int]
    value: float = 0.0
    square: float = 0.0


def exact_values(policy: Policy, task: Task) -> dict[tuple[str, ...], tuple[float, float]]:
    """Colours named so far -> mean and variance of the return, by walking through all replies.

    A reply that names no colour ends the game, so all of them together need no walk.
    """
    conversation = Conversation(policy.tokenizer)
    nodes = {node.colours: node for node in _histories(conversation, task)}
    chances = _chances(policy, conversation, list(nodes.values()))
    panels = {}
    for colours in sorted(nodes, key=len, reverse=True):
        node = nodes[colours]
        for colour, chance in zip(COLOURS, chances[colours], strict=True):
            step = _replayed(task, (*colours, colour))[-1]
            later = nodes.get((*colours, colour), Node((), []))
            paid = step.env_reward
            node.value += chance * (paid + later.value)
            node.square += chance * (paid**2 + 2 * paid * later.value + later.square)
        before = sum(step.env_reward for step in _replayed(task, colours))
        panels[colours] = before + node.value, node.square - node.value**2
    return panels


def _histories(conversation: Conversation, task: Task) -> Iterator[Node]:
    waiting = [Node((), conversation.opening(OPENING))]
    while waiting:
        node = waiting.pop()
        yield node
        for colour in COLOURS:
            step = _replayed(task, (*node.colours, colour))[-1]
            if not step.done:
                text = conversation.observation(step.observation.text)
                tokens = node.tokens + conversation.reply(colour) + text
                waiting.append(Node((*node.colours, colour), tokens))


@torch.no_grad()
def _chances(
    policy: Policy, conversation: Conversation, nodes: list[Node]
) -> dict[tuple[str, ...], list[float]]:
    """Probability of each colour's own tokens at each history."""
    replies = [conversation.reply(colour) for colour in COLOURS]
    rows = [(node.tokens + reply, len(node.tokens)) for node in nodes for reply in replies]
    spans = [[(start, len(tokens))] for tokens, start in rows]
    batch = make_batch([tokens for tokens, _ in rows], spans, policy.device)
    logprobs, _ = sampled_logprobs(policy.causal_lm, batch)
    parts = logprobs.double().split([end - start for ((start, end),) in spans])
    chances = [float(part.sum().exp()) for part in parts]
    size = len(COLOURS)
    return {node.colours: chances[size * i : size * (i + 1)] for i, node in enumerate(nodes)}


def _replayed(task: Task, colours: tuple[str, ...]) -> list[Step]:
    env = LampEnv()
    env.reset(task)
    return [env.step(colour) for colour in colours]
