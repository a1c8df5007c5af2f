"""The text environment of chores, with a primer and an offline rubric for judges."""

from hgrpo.games import streams
from hgrpo.games.base import Observation, PickledByReplay, Step, Task, check_action, fingerprint
from hgrpo.games.chores.game import BAGS, PLACES, Game, habits_of, read
from hgrpo.games.chores.settings import ChoresSettings
from hgrpo.games.environment import JudgeText, Turns

LEAVE, NO_EFFECT = "leave", "Nothing happens."


class ChoresEnv(PickledByReplay):
    """In each turn, this environment asks where one object goes. The score is given at the end."""

    def __init__(self, settings: ChoresSettings):
        self._settings, self._arguments = settings, (settings,)
        self._habits = habits_of(settings)
        self._task: Task | None = None
        self._played: list[str] = []
        self._game: Game | None = None
        self._bag: str | None = None
        self._chosen: list[str] = []
        self._right = 0
        self._done = True

    def reset(self, task: Task) -> Observation:
        """Start a game.

        Raises:
            UserError: the panels were created with different habits or rules.
        """
        self._game = read(task, self._settings)
        self._task, self._played = task, []
        self._bag, self._chosen, self._right, self._done = None, [], 0, False
        self._goal = f"put everything where the {self._game.client} wants it."
        text = f"{len(self._game.things)} things lie about. Your task is to: {self._goal}"
        return Observation(self._goal, f"{text} {self._next()}")

    def fork(self) -> "ChoresEnv":
        twin = self._twin()
        twin._chosen = self._chosen[:]
        return twin

    def admissible_commands(self) -> list[str]:
        """The bags or places that can be chosen, and `leave` if the settings allow it."""
        if self._done:
            return []
        if self._bag_is_due:
            return list(BAGS)
        leave = [LEAVE] if self._settings.may_leave else []
        return [*PLACES[: self._settings.places], *leave]

    def step(self, action: str) -> Step:
        """Execute one command. An inadmissible command has no effect.

        Raises:
            RuntimeError: called before the first `reset`, or after the end of the game.
            TypeError: the action is not a string.
        """
        check_action(action)
        if self._done:
            raise RuntimeError("`step` was called before `reset` or after the end")
        self._played.append(action)
        before = self._score()
        admissible = action in self.admissible_commands()
        paid = self._apply(action) if admissible else 0.0
        if self._done:
            paid += self._verdict()
        text = "That is all." if self._done else self._next()
        text = text if admissible else f"{NO_EFFECT} {text}"
        return Step(
            Observation(self._goal, text),
            paid,
            self._score() - before,
            self._done,
            self._done and self._score() >= self._settings.pass_score,
            {"admissible": admissible},
        )

    def situation(self) -> tuple[str, str]:
        """Fingerprints of the state and of the admissible commands.

        The state consists of what the agent knows: the bag and the places chosen so far, in order.
        It excludes the hidden facts, i.e. which chores count and which places are right.
        """
        return fingerprint([self._bag, self._chosen]), fingerprint(self.admissible_commands())

    def exact_state(self) -> tuple[tuple[bool, int], tuple[bool, int]]:
        """The current question, whether the bag is right, and the number of right places."""
        right_bag = self._bag == self._habits.bag[self._game.client]
        return (self._bag_is_due, len(self._chosen)), (right_bag, self._right)

    def worths(self) -> dict[str, float]:
        """For each admissible command, the increase in the final score if it is chosen."""
        gain = 0.0
        if self._bag_is_due:
            gain = self._settings.delay
        elif self._game.counts[len(self._chosen)]:
            gain = (1 - self._settings.delay) / sum(self._game.counts)
        right = self.right_command()
        return {command: gain * (command == right) for command in self.admissible_commands()}

    def right_command(self) -> str:
        """The right command according to the habits, even if the chore does not count."""
        right = self._habits.bag if self._bag_is_due else self._habits.place
        return right[self.subject]

    @property
    def subject(self) -> str:
        """Subject of the question: an object, or the client if the question is about the bag."""
        return self._game.client if self._bag_is_due else self._game.things[len(self._chosen)]

    @property
    def _bag_is_due(self) -> bool:
        return self._settings.delay > 0 and self._bag is None

    def _next(self) -> str:
        if self._bag_is_due:
            return "Which bag do you take?"
        return f"Where does the {self._game.things[len(self._chosen)]} go?"

    def _score(self) -> float:
        bag_is_right = self._bag == self._habits.bag[self._game.client]
        return self._game.score(self._settings, bag_is_right, self._right)

    def _apply(self, action: str) -> float:
        if action == LEAVE:
            self._done = True
        elif self._bag_is_due:
            self._bag = action
        else:
            counts, right = self._game.counts[len(self._chosen)], action == self.right_command()
            self._chosen.append(action)
            self._done = len(self._chosen) == len(self._game.things)
            if not counts:
                return self._distraction()
            self._right += right
        return 0.0

    def _distraction(self) -> float:
        """Draw an immediate reward: `distractor` or 0, each with probability 1/2.

        The draw depends on the game, the turn and the place, but not on the habits.
        """
        if not self._settings.distractor:
            return 0.0
        turn = len(self._chosen)
        rng = streams.generator(
            "chores-distractor", self._task.content_hash, turn, self._chosen[-1]
        )
        return self._settings.distractor * float(rng.random() < 0.5)

    def _verdict(self) -> float:
        score = self._score()
        graded = self._settings.verdict == "graded"
        return score if graded else float(score >= self._settings.pass_score)


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """A turn scores 5, or 0 if it has no effect. The last turn scores 10 for a won game, else 2.

    Right and wrong places get the same score, because the text does not show which are right.
    """
    last = 10.0 if completed else 2.0
    return [*(5.0 * (not text.startswith(NO_EFFECT)) for text, _ in turns[1:]), last]


JUDGE_TEXT = JudgeText(
    "The game is Chores in text. Each turn asks where one thing goes. Every kind of thing has one "
    "right place, the same in all games, which no answer reveals. Only some of the chores count, "
    "and the game is won if enough of these are right. A reply without effect counts for least.",
    score,
    rubric_version="chores-1",
)
