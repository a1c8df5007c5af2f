"""The primer for judges of ALFWorld, and the offline rubric.

The rubric infers the effect of a turn from the observation in the next turn. It uses these terms:

- A goal object is an object of the type in the goal sentence. The goal lamp is also a goal object.
- A goal place is a receptacle of the type in the goal sentence.
- A goal object is ready when it has been heated, cooled or cleaned as required by the goal. If the
  goal requires no such change, goal objects are ready from the start.

The score of a turn is given by the first line that applies:

score  turn
-----  ----
   10  the last turn of a completed task
    0  a turn without a command, or with the result "Nothing happens"
    2  any other last turn (its effect cannot be observed)
    1  repeating a command in the same situation (observation, objects in hand, changed objects)
   10  heating, cooling or cleaning a goal object as required, for the first time
   10  putting a ready goal object down at the goal place
   10  using the goal lamp while holding a goal object
    4  using the goal lamp without a goal object in hand
    1  taking a ready goal object out of the goal place again
    9  taking a goal object for the first time
    3  taking a goal object again from any other place
    8  opening a receptacle for the first time, and seeing a goal object in it for the first time
    5  opening any other receptacle for the first time
    7  arriving at a place, and seeing a goal object there for the first time
    7  arriving at the tool for the required change, with a goal object that is not ready
    7  arriving at the goal place or the goal lamp, with a ready goal object
    4  arriving at any other place for the first time
    2  any other turn
"""

import re
from collections.abc import Callable

from hgrpo.games.alfworld.vocabulary import TOOLS, kind_of
from hgrpo.games.environment import JudgeText, Turns

_NAME = r"([a-z]+ \d+)"
_VISIBLE = re.compile(rf"\ban? {_NAME}")
_WISHES = {
    "heat": {"heat", "heated", "hot", "warm"},
    "cool": {"cool", "cooled", "cold", "chilled"},
    "clean": {"clean", "cleaned", "washed", "rinsed"},
}


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Score each turn of a trajectory from 0 to 10, by the rules above."""
    reader = _Household(goal or turns[0][0].partition("Your task is to:")[2])
    results = [*(observation for observation, _ in turns[1:]), None]
    scores = [
        reader.score(observation, action.strip().lower(), result)
        for (observation, action), result in zip(turns, results, strict=True)
    ]
    return [*scores[:-1], 10.0] if completed else scores


class _Household:
    """The state inferred from the trajectory so far, and the rules that score its turns."""

    def __init__(self, goal: str):
        self.words = set(re.findall(r"[a-z]+", goal.lower()))
        self.wished = {change for change, words in _WISHES.items() if words & self.words}
        self.tried: set[tuple] = set()  # (situation, command)
        self.visited: set[str] = set()
        self.opened: set[str] = set()
        self.seen: set[tuple[str, str]] = set()  # (goal object, place where it was seen)
        self.held: set[str] = set()
        self.taken: set[str] = set()
        self.changed: set[tuple[str, str]] = set()  # (change, goal object)
        self.home: set[str] = set()  # ready goal objects put down at the goal place

    def score(self, observation: str, action: str, result: str | None) -> float:
        if not action or (result is not None and "nothing happens" in result.lower()):
            return 0.0
        if result is None:
            return 2.0
        attempt = (observation, frozenset(self.held), frozenset(self.changed), action)
        repeated = attempt in self.tried
        self.tried.add(attempt)
        # Apply the rule to repeated commands as well, because the rule updates the state.
        score = self._rule(action, result)
        return 1.0 if repeated else score

    def _rule(self, action: str, result: str) -> float:
        for pattern, rule in _RULES.items():
            if match := re.fullmatch(pattern, action):
                return rule(self, *match.groups(), result=result)
        return 2.0

    def _go(self, place: str, result: str) -> float:
        new = place not in self.visited
        self.visited.add(place)
        if self._finds(place, result) or self._needed(place, result):
            return 7.0
        return 4.0 if new else 2.0

    def _open(self, place: str, result: str) -> float:
        new = place not in self.opened
        self.opened.add(place)
        finds = self._finds(place, result)
        if not new:
            return 2.0
        return 8.0 if finds else 5.0

    def _take(self, thing: str, _place: str, result: str) -> float:
        self.held.add(thing)
        if not self._in_goal(thing):
            return 2.0
        if thing in self.home:
            self.home.remove(thing)
            return 1.0
        again = thing in self.taken
        self.taken.add(thing)
        return 3.0 if again else 9.0

    def _put(self, thing: str, place: str, result: str) -> float:
        self.held.discard(thing)
        if self._ready(thing) and self._in_goal(place):
            self.home.add(thing)
            return 10.0
        return 2.0

    def _change(self, change: str, thing: str, _tool: str, result: str) -> float:
        new = (change, thing) not in self.changed
        self.changed.add((change, thing))
        return 10.0 if new and self._in_goal(thing) and change in self.wished else 2.0

    def _use(self, thing: str, result: str) -> float:
        if not self._in_goal(thing):
            return 2.0
        return 10.0 if any(map(self._in_goal, self.held)) else 4.0

    def _in_goal(self, name: str) -> bool:
        return kind_of(name) in self.words

    def _ready(self, thing: str) -> bool:
        done = {change for change, changed in self.changed if changed == thing}
        return self._in_goal(thing) and self.wished <= done

    def _finds(self, place: str, result: str) -> bool:
        """Whether `result` mentions a goal object that has not been seen at `place` before.

        Afterwards, all goal objects in `result` count as seen there.
        """
        sights = {(t, place) for t in _visible(result) if self._in_goal(t) and t not in self.home}
        new = not sights <= self.seen
        self.seen |= sights
        return new

    def _needed(self, place: str, result: str) -> bool:
        for thing in self.held:
            if not self._in_goal(thing):
                continue
            if self._ready(thing):
                kinds = {kind_of(name) for name in _visible(result)} - {kind_of(thing)}
                if self._in_goal(place) or kinds & self.words:
                    return True
            elif kind_of(place) in {TOOLS[change].lower() for change in self.wished}:
                return True
        return False


_RULES: dict[str, Callable[..., float]] = {
    rf"go to {_NAME}": _Household._go,
    rf"open {_NAME}": _Household._open,
    rf"take {_NAME} from {_NAME}": _Household._take,
    rf"(?:move|put) {_NAME} (?:to|in/on|in|on) {_NAME}": _Household._put,
    rf"(heat|cool|clean) {_NAME} with {_NAME}": _Household._change,
    rf"use {_NAME}": _Household._use,
}


def _visible(result: str) -> list[str]:
    return _VISIBLE.findall(result.lower().partition("you see")[2])


JUDGE_TEXT = JudgeText(
    primer=(
        "The game is a household in text (ALFWorld). The agent walks between receptacles, opens "
        "them, takes, heats, cools, cleans and puts down objects. Turns that bring a sub-goal of "
        "the task nearer (finding, taking or changing the object asked for, bringing it to its "
        "place) count for more than exploration that shows nothing, and exploration for more than "
        'actions without effect ("Nothing happens."), repetitions and undoing what was done.'
    ),
    score=score,
    rubric_version="4e1d479b306dc7a1",
)
