"""Creates demonstrations by a scripted player (the "searcher") or from the games' walkthroughs.

The searcher has the same observations as an agent: the opening text with the goal, and then one
observation per command. The settings determine how often it idles, revisits searched places, and
closes receptacles that it has opened. A searcher with `favourites` also knows where objects of each
type are usually placed. The success rate of a searcher with `favourites` is a study's ceiling.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.alfworld.env import AlfworldEnv
from hgrpo.games.alfworld.gamefile import load_compiled
from hgrpo.games.alfworld.goals import KINDS, read
from hgrpo.games.alfworld.house import Household
from hgrpo.games.alfworld.settings import AlfworldSettings, SearcherSettings
from hgrpo.games.alfworld.vocabulary import PUT, TOOLS, kind_of
from hgrpo.games.base import Task
from hgrpo.games.demonstration import play, replayed, shared_out

# Maps the receptacle types in a room and an object type to the receptacle types in which to search
# for the object first. All types are display names.
Favourites = Callable[[set[str], str], set[str]]
Play = Generator[str, str, None]
Search = Generator[str, str, tuple[str, str]]

_THING = re.compile(r"\ba ([a-z]+ \d+)")
_OPENING = "-= Welcome to TextWorld, ALFRED! =-"


class Searcher:
    """A scripted player for one episode.

    `act()` returns the first command, and `act(observation)` each later one. If all places have
    been searched without success, the search starts again, so there is always a next command.

    Args:
        opening: the text after the reset, which contains the room's receptacles and the goal.
        language: "move" (`move X to Y`) or "put" (`put X in/on Y`).
        favourites: function that returns usual places of objects; None if they are not known.

    Raises:
        UserError: the goal does not match one of ALFWorld's templates, or the opening text
            contains no receptacle.
    """

    def __init__(
        self,
        opening: str,
        goal: str,
        config: SearcherSettings,
        rng: np.random.Generator,
        language: str = "move",
        favourites: Favourites | None = None,
    ):
        parsed = read(goal)
        if parsed is None:
            raise UserError(f"the expert cannot parse the goal {goal!r}")
        self.goal = parsed
        self.config = config
        self.rng = rng
        self.put = PUT[language]
        room = opening.removeprefix(_OPENING).partition("Your task is to:")[0]
        self.listed = list(dict.fromkeys(_THING.findall(room)))
        if not self.listed:
            raise UserError(f"no receptacle found in the opening text {opening[:120]!r}")
        self.favourites = favourites
        self.order = self.listed
        if config.order == "random":
            self.order = [self.listed[i] for i in rng.permutation(len(self.listed))]
        self.here = ""
        self.seen: dict[str, list[str]] = {}  # receptacle -> its contents when last seen
        self.shut: set[str] = set()  # receptacles that were closed when last seen
        self.opened: set[str] = set()  # receptacles opened and not closed by this searcher
        self.home = ""  # the destination of targets; "" until it is chosen
        self.searched_all = False
        self._commands = self._play()

    def act(self, observation: str | None = None) -> str:
        """The next command. `observation` is the previous command's result (None at the start)."""
        return self._commands.send(observation)

    def _play(self) -> Play:
        """Play the whole episode. The generator yields commands and receives observations."""
        spec = KINDS[self.goal.task_type]
        while True:
            place, item = yield from self._find(self.goal.target, self._may_fetch)
            yield from self._reach(place)
            if item not in self.seen[place]:
                continue
            yield f"take {item} from {place}"
            self.seen[place].remove(item)
            if spec.change:
                tool = self._first(TOOLS[spec.change].lower())
                yield from self._go(tool)
                yield f"{spec.change} {item} with {tool}"
            if self.goal.toggle:
                place, lamp = yield from self._find(self.goal.toggle, lambda place: True)
                yield from self._reach(place)
                yield f"use {lamp}"
                while True:  # the game should be won; otherwise wait for the turn cap
                    yield "look"
            self.home = self.home or self._goal_place()
            yield from self._reach(self.home)
            yield self.put.format(item, self.home)
            self.seen[self.home].append(item)

    def _may_fetch(self, place: str) -> bool:
        """Whether a target in `place` may be taken; False if `place` is where targets are put.

        If the goal requires two objects, no target is taken from a receptacle of the goal's type
        until all places have been searched.
        """
        if place == self.home:
            return False
        one = KINDS[self.goal.task_type].copies == 1
        return one or self.searched_all or kind_of(place) != self.goal.receptacle

    def _goal_place(self) -> str:
        """A receptacle of the goal's type, preferably one that contains a target."""
        for place, items in self.seen.items():
            if kind_of(place) == self.goal.receptacle and self.goal.target in map(kind_of, items):
                return place
        return self._first(self.goal.receptacle)

    def _first(self, kind: str) -> str:
        for place in self.listed:
            if kind_of(place) == kind:
                return place
        raise UserError(f"the goal requires a {kind}, but the room has only: {self.listed}")

    def _find(self, kind: str, allowed: Callable[[str], bool]) -> Search:
        while True:
            for place, items in self.seen.items():
                for item in items:
                    if kind_of(item) == kind and allowed(place):
                        return place, item
            yield from self._next_stop(kind)

    def _next_stop(self, kind: str) -> Play:
        """Visit the next place to search. This yields at least one command."""
        if self.rng.random() < self.config.dawdle:
            idle = ["look", "inventory"] + ([f"examine {self.here}"] if self.here else [])
            yield idle[int(self.rng.integers(len(idle)))]
        known = [place for place in self.seen if place != self.here]
        if known and self.rng.random() < self.config.revisit:
            yield from self._reach(known[int(self.rng.integers(len(known)))])
            return
        fresh = [place for place in self._preferred(kind) if place not in self.seen]
        if not fresh:
            # All places have been searched without success, so the search starts again.
            self.searched_all = True
            self.seen.clear()
            fresh = self._preferred(kind)
        at_random = self.rng.random() < self.config.random_pick
        yield from self._reach(fresh[int(self.rng.integers(len(fresh))) if at_random else 0])

    def _preferred(self, kind: str) -> list[str]:
        if self.favourites is None:
            return self.order
        usual = self.favourites({kind_of(place) for place in self.listed}, kind)
        unlikely = self.goal.receptacle
        return sorted(self.order, key=lambda p: (kind_of(p) == unlikely, kind_of(p) not in usual))

    def _go(self, place: str) -> Play:
        """Go to a receptacle unless already there; sometimes close the current receptacle first."""
        if place == self.here:
            return
        if self.here in self.opened and self.rng.random() < self.config.close_after_open:
            yield f"close {self.here}"
            self.opened.discard(self.here)
            self.shut.add(self.here)
        answer = yield f"go to {place}"
        self.here = place
        self._note(place, answer)

    def _reach(self, place: str) -> Play:
        """Go to a receptacle, open it if necessary, and store its contents in `seen`."""
        yield from self._go(place)
        if place in self.shut:
            answer = yield f"open {place}"
            self.opened.add(place)
            self._note(place, answer)
        if place not in self.seen:
            answer = yield f"examine {place}"
            self._note(place, answer)
            self.seen.setdefault(place, [])

    def _note(self, place: str, answer: str) -> None:
        if answer.endswith(f"The {place} is closed."):
            self.shut.add(place)
            return
        self.shut.discard(place)
        _, sight, things = answer.partition("you see")
        if sight:
            self.seen[place] = _THING.findall(things)


def informed(config: SearcherSettings) -> SearcherSettings:
    """Copy the settings, and set the probabilities of all unnecessary commands to 0."""
    return config.model_copy(
        update={"random_pick": 0.0, "dawdle": 0.0, "revisit": 0.0, "close_after_open": 0.0}
    )


def demonstrate(
    config: AlfworldSettings, assets: Path, panel: list[Task], seed: int, skipped: Counter[str]
) -> Iterator[dict]:
    """Yield rows of trajectories.parquet, distributed evenly over the games of the panel.

    If the goal is a template sentence, the searcher plays the game. However, a random fraction
    `walkthrough_share` of the trajectories replays the walkthrough, if the game has one. If a human
    wrote the goal, all trajectories replay the walkthrough. Games with such a goal and without a
    walkthrough are excluded and counted in `skipped`.
    """
    expert = config.expert
    env = AlfworldEnv(assets, config.engine)
    for task, repetition in shared_out(expert.trajectories, panel):
        opening = env.reset(task)
        understood = read(opening.goal) is not None
        name = (seed, task.task_id, repetition)
        draw = streams.generator("expert-source", *name).random()
        by_walkthrough = not understood or draw < expert.walkthrough_share
        walkthrough = load_compiled(assets / task.path).walkthrough if by_walkthrough else ()
        if walkthrough:
            player = replayed(walkthrough)
            played = play(env, task, opening, "walkthrough", player, len(walkthrough))
        elif understood:
            rng = streams.generator("expert", *name)
            player = Searcher(opening.text, opening.goal, expert, rng, config.grammar)
            played = play(env, task, opening, "expert", player.act, expert.turn_cap)
        else:
            skipped["goal not understood, and no walkthrough"] += 1
            continue
        yield played.row


def ceiling(
    config: AlfworldSettings, assets: Path, panel: list[Task], seed: int
) -> list[dict] | None:
    """One row per episode of a searcher with `favourites`; None if games come from a folder."""
    if config.games.generate is None:
        return None
    env = AlfworldEnv(assets, config.engine)
    usual = Household(config.games.generate).usual
    knobs, rows = informed(config.expert), []
    for task in panel:
        opening = env.reset(task)
        rng = streams.generator("expert", "informed", seed, task.task_id)
        player = Searcher(opening.text, opening.goal, knobs, rng, config.grammar, usual)
        rows.append(play(env, task, opening, "expert", player.act, knobs.turn_cap).row)
    return rows
