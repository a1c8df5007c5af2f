"""Draws houses, each with its receptacles, its objects, and the places of the objects."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.alfworld.goals import KINDS, Goal
from hgrpo.games.alfworld.settings import GenerateSettings
from hgrpo.games.alfworld.vocabulary import LAMP, OBJECTS, RECEPTACLES, TOOLS

T = TypeVar("T")

# Maximum number of objects of one distractor type. More would only add names like "mug 3".
_MOST_OF_A_KIND = 2


@dataclass(frozen=True)
class House:
    """One room with its receptacles and objects."""

    room: str
    receptacles: tuple[str, ...]  # types
    objects: tuple[tuple[str, int], ...]  # (type, index of receptacle); targets come first


class Household:
    """The receptacles, objects and goals from which the generator draws.

    Raises:
        UserError: a type is unknown, or a task type is impossible with these types and rooms.
    """

    def __init__(self, config: GenerateSettings):
        for key, table in (("receptacle_types", RECEPTACLES), ("object_types", OBJECTS)):
            for name in getattr(config, key) or ():
                if name not in table:
                    known = ", ".join(sorted(table))
                    raise UserError(f"games.generate.{key}: unknown {name!r}; choose from {known}")
        self.config = config
        receptacles = config.receptacle_types or tuple(RECEPTACLES)
        objects = config.object_types or tuple(OBJECTS)
        self.receptacles = {
            room: sorted(r for r in receptacles if room in RECEPTACLES[r].rooms)
            for room in config.rooms
        }
        self.objects = {
            room: sorted(o for o in objects if room in OBJECTS[o].rooms and self.places(room, o))
            for room in config.rooms
        }
        # Maps (room, object type) to the receptacle types that usually contain such objects.
        self.favourites = {
            (room, kind): self._favourites(room, kind)
            for room, kinds in self.objects.items()
            for kind in kinds
        }
        self.goals = {kind: self._goals(kind) for kind in config.task_types}
        for kind, rooms in self.goals.items():
            if not rooms:
                raise UserError(
                    f"games.generate.task_types: {kind} is impossible with these rooms, "
                    "receptacle_types and object_types"
                )

    def places(self, room: str, target: str) -> list[str]:
        """Receptacle types of `room` that can hold objects of type `target`."""
        return [r for r in self.receptacles[room] if target in RECEPTACLES[r].holds]

    def _favourites(self, room: str, target: str) -> list[str]:
        """Draw a subset of `places`. The seed is `habits.seed`, not the seed of the games."""
        habits, places = self.config.habits, self.places(room, target)
        rng = streams.generator("alfworld-habit", habits.seed, room, target)
        return sorted(places[i] for i in rng.permutation(len(places))[: habits.favourites])

    def usual(self, listed: set[str], kind: str) -> set[str]:
        """Receptacle types that usually contain objects of type `kind`; types are display names.

        Args:
            listed: types of the receptacles in a room, from which the kind of room is inferred.
        """
        matches = [(r, o) for r in self.objects for o in self.objects[r] if o.lower() == kind]
        if not matches:
            return set()
        visible = {room: set(map(str.lower, self.receptacles[room])) for room, _ in matches}
        room, target = max(matches, key=lambda pair: len(visible[pair[0]] & listed))
        return {place.lower() for place in self.favourites[room, target]}

    def _goals(self, kind: str) -> dict[str, list[Goal]]:
        change = KINDS[kind].change
        tool = TOOLS.get(change)
        by_room: dict[str, list[Goal]] = {}
        for room in self.config.rooms:
            if tool and tool not in self.receptacles[room]:
                continue
            for target in self.objects[room]:
                spec, places = OBJECTS[target], self.places(room, target)
                if not spec.pickupable or (change and change not in spec.changes):
                    continue
                goals = []
                if kind == "look_at_obj_in_light" and LAMP in self.objects[room]:
                    goals = [Goal(kind, target, "", LAMP)]
                elif kind != "look_at_obj_in_light" and len(places) > 1:
                    goals = [Goal(kind, target, place, "") for place in places if place != tool]
                if goals:
                    by_room.setdefault(room, []).extend(goals)
        return by_room

    def draw(self, kind: str, rng: np.random.Generator) -> tuple[House, Goal]:
        """Draw a house and a goal that can be reached in it.

        At the start, no target is in a receptacle of the goal's type, so no game is won at reset.
        """
        room = _pick(rng, list(self.goals[kind]))
        choices = self.goals[kind][room]
        target = _pick(rng, sorted({goal.target for goal in choices}))
        goal = _pick(rng, [goal for goal in choices if goal.target == target])
        copies = KINDS[kind].copies + self.config.spare_targets
        starts = [place for place in self.places(room, target) if place != goal.receptacle]
        required = [(target, self._place(rng, room, target, starts)) for _ in range(copies)]
        if LAMP in self.objects[room]:
            required.append((LAMP, self._place(rng, room, LAMP, self.places(room, LAMP))))
        needed = {place for _, place in required} | {goal.receptacle} - {""}
        if tool := TOOLS.get(KINDS[kind].change):
            needed.add(tool)
        receptacles = self._receptacles(rng, room, needed)
        objects = required + self._distractors(rng, room, target, len(required), set(receptacles))
        instances: dict[str, list[int]] = {}
        for index, name in enumerate(receptacles):
            instances.setdefault(name, []).append(index)
        placed = tuple((name, _pick(rng, instances[place])) for name, place in objects)
        return House(room, tuple(receptacles), placed), goal

    def _place(self, rng: np.random.Generator, room: str, target: str, places: list[str]) -> str:
        """Draw a favourite place with probability `habits.strength`, otherwise another place."""
        usual = self.favourites[room, target]
        favoured = [place for place in places if place in usual]
        others = [place for place in places if place not in usual]
        if rng.random() < self.config.habits.strength:
            return _pick(rng, favoured or others)
        return _pick(rng, others or favoured)

    def _receptacles(self, rng: np.random.Generator, room: str, needed: set[str]) -> list[str]:
        """Draw receptacle types: all of `needed`, then one of each other type, then duplicates."""
        low, high = self.config.receptacles
        size = int(rng.integers(low, high + 1))
        rest = [name for name in self.receptacles[room] if name not in needed]
        rest = [rest[i] for i in rng.permutation(len(rest))]
        chosen = (sorted(needed) + rest)[: max(size, len(needed))]
        repeatable = [name for name in self.receptacles[room] if RECEPTACLES[name].repeats]
        while len(chosen) < size and repeatable:
            chosen.append(_pick(rng, repeatable))
        return sorted(chosen)

    def _distractors(
        self, rng: np.random.Generator, room: str, target: str, taken: int, present: set[str]
    ) -> list[tuple[str, str]]:
        low, high = self.config.objects
        count = int(rng.integers(low, high + 1)) - taken
        least, most = self.config.distractors
        places = {
            name: [place for place in self.places(room, name) if place in present]
            for name in self.objects[room]
            if name not in (target, LAMP)
        }
        pool = [name for name in places if places[name]] * _MOST_OF_A_KIND
        if not pool:
            return []
        order = rng.permutation(len(pool))[: min(max(count, least), most)]
        return [(pool[i], self._place(rng, room, pool[i], places[pool[i]])) for i in order]


def _pick(rng: np.random.Generator, items: list[T]) -> T:
    return items[int(rng.integers(len(items)))]
