"""The text environment of chores, and a judge's primer and offline rubric."""

from hgrpo.games import streams
from hgrpo.games.base import Observation, PickledByReplay, Step, Task, check_action, fingerprint
from hgrpo.games.chores.game import BAGS, PLACES, Game, habits_of, read
from hgrpo.games.chores.settings import ChoresSettings
from hgrpo.games.environment import JudgeText, Turns

LEAVE, NO_EFFECT = "leave", "Nothing happens."


class ChoresEnv(PickledByReplay):
    """Asks in each turn where one thing goes, and gives its verdict only at the end."""

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
        """Begin a game.

        Raises:
            UserError: the panels were made with other habits or rules.
        """
        self._game = read(task, self._settings)
        self._task, self._played = task, []
        self._bag, self._chosen, self._right, self._done = None, [], 0, False
        self._goal = f"put everything where the {self._game.client} wants it."
        text = f"{len(self._game.things)} things lie about. Your task is to: {self._goal}"
        return Observation(self._goal, f"{text} {self._next()}")

    def fork(self) -> "ChoresEnv":
        """An independent environment in the same state."""
        twin = self._twin()
        twin._chosen = self._chosen[:]
        return twin

    def admissible_commands(self) -> list[str]:
        """The bags or the places to choose from, and `leave` if the settings allow it."""
        if self._done:
            return []
        if self._bag_is_due:
            return list(BAGS)
        leave = [LEAVE] if self._settings.may_leave else []
        return [*PLACES[: self._settings.places], *leave]

    def step(self, action: str) -> Step:
        """Play one command; a command that is not admissible changes nothing.

        Raises:
            RuntimeError: before the first `reset`, and after the end.
            TypeError: the action is no text.
        """
        check_action(action)
        if self._done:
            raise RuntimeError("step before reset or after the end")
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

        The state is what the agent could know: the bag, and the place of each thing so far, in the
        order of the turns. What counts and what is right is hidden, so it is not part of the state.
        """
        return fingerprint([self._bag, self._chosen]), fingerprint(self.admissible_commands())

    def exact_state(self) -> tuple[tuple[bool, int], tuple[bool, int]]:
        """The number of the question, and of what was done only how much of it is right."""
        right_bag = self._bag == self._habits.bag[self._game.client]
        return (self._bag_is_due, len(self._chosen)), (right_bag, self._right)

    def worths(self) -> dict[str, float]:
        """The gain in final score of each admissible command: the true value of this choice."""
        gain = 0.0
        if self._bag_is_due:
            gain = self._settings.delay
        elif self._game.counts[len(self._chosen)]:
            gain = (1 - self._settings.delay) / sum(self._game.counts)
        right = self.right_command()
        return {command: gain * (command == right) for command in self.admissible_commands()}

    def right_command(self) -> str:
        """The command that agrees with the habits, even if the chore does not count."""
        right = self._habits.bag if self._bag_is_due else self._habits.place
        return right[self.subject]

    @property
    def subject(self) -> str:
        """Subject of the question: a thing or, for the bag, the client."""
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
        """Carry out an admissible command; return its immediate reward."""
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
        """Pay `distractor` or nothing, each with probability 1/2: noise that no habit explains.

        The draw depends only on the game, the turn and the place.
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
    """Score each turn: 5, without effect 0, and the last 10 or 2 by the result.

    The rubric cannot know right places.
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
