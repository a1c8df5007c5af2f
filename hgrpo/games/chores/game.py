"""Defines a game of chores: its objects, their right places, and its score."""

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hgrpo.games import streams
from hgrpo.games.base import Task
from hgrpo.games.chores.settings import ChoresSettings

# Each name is a single word, so that a small tokenizer can represent it by one token.
_THINGS = """
    apple ball basket bell belt book bottle bowl box broom brush button candle card chain clock
    cloth coat coin comb cup dress drum fan flute fork glass glove hammer hat iron jar key kite
    knife ladder lamp lantern letter lock map mask mirror mug nail needle net pan paper pen pillow
    pipe plate pot ring rope ruler scarf scissors shirt shoe soap sock spoon stamp string toy towel
    umbrella vase watch wire
"""
THINGS = tuple(_THINGS.split())
PLACES = ("attic", "basement", "closet", "drawer", "garage", "hall", "kitchen", "shelf")
CLIENTS = ("baker", "doctor", "farmer", "miller", "sailor", "smith", "tailor", "weaver")
BAGS = ("black", "blue", "green", "red")


@dataclass(frozen=True)
class Habits:
    """Facts shared by all games: the right `place` of each kind, and the `bag` of each client."""

    place: dict[str, str]
    bag: dict[str, str]
    counting: tuple[str, ...]  # kinds whose chores count if `counted` is "kinds"
    rules: str  # the settings that determine a game's answers, as JSON


@lru_cache(maxsize=4)
def habits_of(settings: ChoresSettings) -> Habits:
    """Draw the habits from a random stream with the seed `settings.habits`."""
    rng = streams.generator("chores-habits", settings.habits)
    kinds = [THINGS[i] for i in rng.permutation(len(THINGS))[: settings.kinds]]
    places = rng.integers(settings.places, size=settings.kinds)
    bags = rng.integers(len(BAGS), size=len(CLIENTS))
    return Habits(
        {kind: PLACES[place] for kind, place in zip(kinds, places, strict=True)},
        {client: BAGS[bag] for client, bag in zip(CLIENTS, bags, strict=True)},
        tuple(kinds[: settings.counting_kinds]),
        settings.model_dump_json(exclude={"panels", "expert", "turn_cap"}),
    )


@dataclass(frozen=True)
class Game:
    """The content of a game, which is stored as text in `Task.path`.

    Attributes:
        client: the person for whom the chores are done.
        things: kinds of the objects, in the order of turns.
        counts: for each object, whether its chore counts towards the score.
    """

    client: str
    things: tuple[str, ...]
    counts: tuple[bool, ...]

    @cached_property
    def counting(self) -> int:
        """Number of chores that count."""
        return sum(self.counts)

    @property
    def path(self) -> str:
        """The game as one line of text, in which a star marks each chore that counts."""
        chores = zip(self.things, self.counts, strict=True)
        return " ".join([self.client, *(f"{thing}{'*' * counts}" for thing, counts in chores)])

    def content_hash(self, settings: ChoresSettings) -> str:
        """SHA-256 of the game with its habits and its rules."""
        habits = habits_of(settings)
        right = [habits.place.get(thing, "") for thing in self.things]
        text = "\n".join([self.path, habits.bag.get(self.client, ""), *right, habits.rules])
        return hashlib.sha256(text.encode()).hexdigest()

    def score(self, settings: ChoresSettings, bag_is_right: bool, right: int) -> float:
        """The score: (1 - delay) * (fraction of right places) + delay * (1 if the bag is right).

        The fraction is over the chores that count. `delay` is a setting.

        Args:
            bag_is_right: whether the right bag was taken.
            right: number of right choices among the chores that count.
        """
        delay = settings.delay
        return (1 - delay) * (right / self.counting) + delay * bag_is_right


def read(task: Task, settings: ChoresSettings) -> Game:
    """Parse the game of a task.

    Raises:
        UserError: the panels were created with other habits or rules.
    """
    client, *chores = task.path.split()
    things = tuple(chore.rstrip("*") for chore in chores)
    game = Game(client, things, tuple(chore.endswith("*") for chore in chores))
    task.check_content(game.content_hash(settings), f"{task.task_id}: the game with its habits")
    return game
