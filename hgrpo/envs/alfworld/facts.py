"""Facts of one game at one moment, with the indexes that compiled queries look things up in.

Entities are integers in the order of their ids, so sorted integers are sorted names. A fact is
the tuple of its arguments' entities, or the bare entity if there is one argument.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from operator import itemgetter

Fact = int | tuple[int, ...]


def key_getter(positions: tuple[int, ...]) -> Callable:
    """What picks the items at `positions`: bare for one, () for none."""
    return itemgetter(*positions) if positions else lambda _: ()


class Vocabulary:
    """Numbers for predicates and for access patterns (a predicate and its known positions)."""

    def __init__(self) -> None:
        self.predicates: dict[str, int] = {}
        self.patterns: dict[tuple[int, tuple[int, ...]], int] = {}

    def predicate(self, name: str) -> int:
        return self.predicates.setdefault(name, len(self.predicates))

    def pattern(self, predicate: int, known: tuple[int, ...]) -> int:
        """The index that lists, sorted, the facts of `predicate` by their `known` arguments."""
        return self.patterns.setdefault((predicate, known), len(self.patterns))


class Facts:
    """`sets[predicate]` holds the facts; `index[pattern]` maps known arguments to sorted facts.

    A copy shares the predicates that no action changes, and the tuples of all indexes. `possible`
    limits, for some predicates, the facts whose deletion leaves a negation behind.
    """

    __slots__ = ("fluent", "fluent_patterns", "index", "possible", "sets", "watchers")

    def __init__(
        self, vocabulary: Vocabulary, facts: dict[int, Iterable[Fact]], fluent: set[int]
    ) -> None:
        self.sets = [set(facts.get(number, ())) for number in range(len(vocabulary.predicates))]
        self.index: list[dict] = []
        self.watchers: list[list] = [[] for _ in self.sets]
        self.fluent = sorted(fluent)
        self.fluent_patterns = []
        self.possible: dict[int, set[Fact]] = {}
        for (predicate, known), number in vocabulary.patterns.items():
            # A fact of a unary predicate is bare, so its only key is itself.
            getter = key_getter(known)
            groups: dict = {}
            for fact in sorted(self.sets[predicate]):
                groups.setdefault(getter(fact) if known else (), []).append(fact)
            self.index.append({key: tuple(group) for key, group in groups.items()})
            if predicate in fluent:
                self.watchers[predicate].append((number, getter))
                self.fluent_patterns.append(number)

    def copy(self) -> "Facts":
        other = Facts.__new__(Facts)
        other.sets = self.sets[:]
        for number in self.fluent:
            other.sets[number] = self.sets[number].copy()
        other.index = self.index[:]
        for number in self.fluent_patterns:
            other.index[number] = self.index[number].copy()
        other.watchers = self.watchers
        other.fluent = self.fluent
        other.fluent_patterns = self.fluent_patterns
        other.possible = self.possible
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
