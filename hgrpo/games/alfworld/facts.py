"""Stores the facts of a game state, with the indexes that compiled queries use.

Entities are integers in the order of their ids, so that sorting the integers sorts the ids. A fact
of a predicate is the tuple of its arguments, which are entities. If there is only one argument, the
fact is this entity itself.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from copy import copy
from operator import itemgetter

Fact = int | tuple[int, ...]


def key_getter(positions: tuple[int, ...]) -> Callable:
    """`itemgetter(*positions)`, or a function that returns () if `positions` is empty."""
    return itemgetter(*positions) if positions else lambda _: ()


class Vocabulary:
    """Assigns numbers to predicates and patterns (predicates with some known arguments)."""

    def __init__(self) -> None:
        self.predicates: dict[str, int] = {}
        self.patterns: dict[tuple[int, tuple[int, ...]], int] = {}

    def predicate(self, name: str) -> int:
        return self.predicates.setdefault(name, len(self.predicates))

    def pattern(self, predicate: int, known: tuple[int, ...]) -> int:
        """Number of the pattern of `predicate` whose known arguments have the positions `known`."""
        return self.patterns.setdefault((predicate, known), len(self.patterns))


class Facts:
    """The facts of a game state.

    `sets[predicate]` is the set of a predicate's facts. `index[pattern]` maps the known arguments
    of a pattern to a sorted tuple of the matching facts. Copies share sets that never change.
    """

    __slots__ = ("fluent", "fluent_patterns", "index", "sets", "watchers")

    def __init__(
        self, vocabulary: Vocabulary, facts: dict[int, Iterable[Fact]], fluent: set[int]
    ) -> None:
        self.sets = [set(facts.get(number, ())) for number in range(len(vocabulary.predicates))]
        self.index: list[dict] = []
        self.watchers: list[list] = [[] for _ in self.sets]
        self.fluent = sorted(fluent)
        self.fluent_patterns = []
        for (predicate, known), number in vocabulary.patterns.items():
            # Facts of unary predicates are integers, and `known` is empty for these predicates.
            getter = key_getter(known)
            groups: dict = {}
            for fact in sorted(self.sets[predicate]):
                groups.setdefault(getter(fact) if known else (), []).append(fact)
            self.index.append({key: tuple(group) for key, group in groups.items()})
            if predicate in fluent:
                self.watchers[predicate].append((number, getter))
                self.fluent_patterns.append(number)

    def copy(self) -> "Facts":
        other = copy(self)
        other.sets = self.sets[:]
        for number in self.fluent:
            other.sets[number] = self.sets[number].copy()
        other.index = self.index[:]
        for number in self.fluent_patterns:
            other.index[number] = self.index[number].copy()
        return other

    def add(self, predicate: int, fact: Fact) -> None:
        facts = self.sets[predicate]
        if fact in facts:
            return
        facts.add(fact)
        for number, getter in self.watchers[predicate]:
            groups, key = self.index[number], getter(fact)
            group = list(groups.get(key, ()))
            insort(group, fact)
            groups[key] = tuple(group)

    def remove(self, predicate: int, fact: Fact) -> None:
        facts = self.sets[predicate]
        if fact not in facts:
            return
        facts.remove(fact)
        for number, getter in self.watchers[predicate]:
            groups, key = self.index[number], getter(fact)
            groups[key] = tuple(other for other in groups[key] if other != fact)
