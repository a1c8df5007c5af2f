"""The text environment of Sokoban."""

from itertools import product
from pathlib import Path

from hgrpo.games.base import Observation, PickledByReplay, Step, Task, check_action, fingerprint
from hgrpo.games.sokoban.files import compiled, content_hash, level_text
from hgrpo.games.sokoban.level import ACTIONS, Board
from hgrpo.games.sokoban.replies import read_reply, write_reply
from hgrpo.games.sokoban.rewards import turn_reward
from hgrpo.games.sokoban.settings import SokobanSettings
from hgrpo.games.sokoban.views import GOAL, NOT_UNDERSTOOD, opening, picture


class SokobanEnv(PickledByReplay):
    """Sokoban, with one or more actions per turn.

    The game ends when the level is solved, or when the maximum number of actions or turns is
    reached.

    Args:
        tasks: base folder of the task paths.
    """

    def __init__(self, tasks: Path | str, settings: SokobanSettings):
        self._arguments = (tasks, settings)
        self._folder, self._settings = Path(tasks), settings
        self._task: Task | None = None
        self._played: list[str] = []
        self._openings: dict[tuple[int, int], str] = {}
        self._done = True

    def reset(self, task: Task) -> Observation:
        """Start a level from the beginning.

        Raises:
            UserError: the level's file is missing, or has changed since the task was created.
        """
        settings = self._settings
        text = level_text(self._folder, task.path)
        task.check_content(content_hash(text), f"{self._folder / task.path}: the level")
        self.level, self.distances = compiled(text, settings.actions)
        self._draw = picture(self.level, settings.view, settings.symbols).draw
        self._task, self._played, self._done = task, [], False
        self._player, self._boxes = self.level.start
        self._placed = self.level.placed(self._boxes)
        self._taken = 0
        self._last_potential = self._potential()
        size = self.level.rows, self.level.columns
        if size not in self._openings:
            self._openings[size] = opening(self.level, settings)
        return Observation(GOAL, self._openings[size] + self._state())

    @property
    def board(self) -> Board:
        """The cell of the player, and the cells of the boxes."""
        return self._player, self._boxes

    @property
    def left(self) -> int:
        """Number of remaining actions."""
        return self._settings.actions - self._taken

    def step(self, action: str) -> Step:
        """Execute the actions of a reply until the level is solved or no action remains.

        Raises:
            RuntimeError: called before the first `reset`, or after the end of the game.
            TypeError: the reply is not a string.
        """
        check_action(action)
        if self._done:
            raise RuntimeError("`step` was called before `reset` or after the end")
        settings, level = self._settings, self.level
        actions, understood = read_reply(action, settings.actions_per_turn)
        first, before, left = not self._played, self._taken, settings.actions - self._taken
        self._played.append(action)
        player, boxes, deltas = self._player, self._boxes, level.deltas
        placed, all_placed = self._placed, len(boxes)
        for number in actions[:left]:
            self._taken += 1
            player, moved = level.move(player, boxes, deltas[number])
            if moved is not boxes:
                boxes, placed = moved, level.placed(moved)
                if placed == all_placed:
                    break
        solved = placed == all_placed
        reward = turn_reward(
            settings.penalties,
            settings.actions,
            before,
            self._taken - before,
            understood,
            placed - self._placed,
            solved,
            first,
        )
        self._player, self._boxes, self._placed = player, boxes, placed
        self._done = (
            solved or self._taken == settings.actions or len(self._played) == settings.turn_cap
        )
        potential = self._potential()
        gain, self._last_potential = potential - self._last_potential, potential
        text = self._state() if understood else NOT_UNDERSTOOD + self._state()
        out_of_turns = self._done and not solved and self._taken < settings.actions
        info = {"admissible": understood, "out_of_turns": out_of_turns}
        return Step(Observation(GOAL, text), reward, gain, self._done, solved, info)

    def fork(self) -> "SokobanEnv":
        return self._twin()

    def admissible_commands(self) -> list[str]:
        """All replies with up to the allowed number of actions, including blocked actions."""
        if self._done:
            return []
        most = min(self._settings.actions_per_turn, self.left)
        numbers = range(len(ACTIONS))
        return [
            write_reply(actions)
            for many in range(1, most + 1)
            for actions in product(numbers, repeat=many)
        ]

    def situation(self) -> tuple[str, str]:
        """Fingerprints of the board and of the admissible commands.

        The admissible commands depend only on the maximum number of actions in the next reply, so
        the second fingerprint is computed from this number.
        """
        if self._task is None:
            raise RuntimeError("`situation` was called before `reset`")
        most = 0 if self._done else min(self._settings.actions_per_turn, self.left)
        return fingerprint([self._player, *self._boxes]), fingerprint([most])

    def _potential(self) -> float:
        """Potential in [0, 1]: 1 if solved, 0 if unsolvable, and lower for longer solutions.

        A board also counts as unsolvable if its shortest solution is longer than an episode.
        """
        actions = self.distances.get((self._player, self._boxes))
        return 0.0 if actions is None else 1.0 - actions / (self._settings.actions + 1)

    def _state(self) -> str:
        drawn = self._draw(self._player, self._boxes)
        if self._done:
            return f"{'Solved' if self._placed == len(self._boxes) else 'Lost'}.\n{drawn}"
        left = self._settings.actions - self._taken
        return (
            f"Turn {len(self._played) + 1} of {self._settings.turn_cap}, actions left: {left}\n"
            f"{drawn}"
        )
