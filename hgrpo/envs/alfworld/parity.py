"""Walks that compare two engines on one game, command by command."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

NONSENSE = (
    "",
    "Look",
    "go to",
    "go to nowhere 1",
    "take",
    "move it to the moon 1",
    "examine agent1",
    "look look",
    "Nothing happens.",
    "open {r}",
)


class Engine(Protocol):
    """What both engines offer."""

    won: bool

    def reset(self) -> str: ...

    def step(self, command: str) -> str: ...

    def admissible_commands(self) -> list[str]: ...


@dataclass(frozen=True)
class Mismatch:
    """`what` (text, commands or won) differed after `command`, the `step`-th of a walk."""

    game: str
    walk: str
    step: int
    command: str
    what: str
    expected: object
    found: object


@dataclass
class Tally:
    """Steps compared and what differed."""

    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)


def compare_walk(
    game: str,
    walk: str,
    commands: Iterator[str],
    expected: Engine,
    found: Engine,
    tally: Tally,
) -> None:
    """Reset both engines, play `commands` in both and add what differs to `tally`.

    A walk ends at its first difference: later ones would only repeat it.
    """
    texts = (expected.reset(), found.reset())
    step, command = 0, ""
    while True:
        rows = [
            ("text", *texts),
            ("commands", expected.admissible_commands(), found.admissible_commands()),
            ("won", expected.won, found.won),
        ]
        for what, left, right in rows:
            if left != right:
                tally.mismatches.append(Mismatch(game, walk, step, command, what, left, right))
                return
        command = next(commands, None)
        if command is None:
            return
        step += 1
        texts = (expected.step(command), found.step(command))
        tally.steps += 1


def random_walk(engine: Engine, rng: random.Random, steps: int) -> Iterator[str]:
    """Commands drawn from what `engine` admits, and one in twenty that means nothing.

    Half of the draws skip the ways to go elsewhere, or a walk would rarely touch anything. Some
    commands carry spaces around them, which engines must ignore. The generator reads the engine's
    state when asked for the next command.
    """
    for _ in range(steps):
        commands = engine.admissible_commands()
        if rng.random() < 0.05:
            yield rng.choice([*NONSENSE, rng.choice(commands).upper()])
            continue
        if rng.random() < 0.5:
            commands = [c for c in commands if not c.startswith("go to ")]
        yield (" " * (rng.random() < 0.05) + rng.choice(commands) + "\t" * (rng.random() < 0.05))
