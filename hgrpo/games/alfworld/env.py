"""ALFWorld as a TextEnv, with the native or the official engine."""

from pathlib import Path

from hgrpo.games.alfworld.gamefile import Game, load_compiled, read_game
from hgrpo.games.alfworld.native import NativeGame
from hgrpo.games.alfworld.potential import View
from hgrpo.games.alfworld.textworld_engine import OfficialGame, require_textworld
from hgrpo.games.base import Observation, PickledByReplay, Step, Task, check_action, fingerprint

# Predicates whose new facts are listed by `changed`.
_CHANGES = ("holds", "inreceptacle", "inreceptacleobject", "isclean", "iscool", "ishot")
_CHANGES += ("issliced", "istoggled")


class AlfworldEnv(PickledByReplay):
    """Household games. The reward is 1.0 for the winning step and 0.0 for all other steps.

    `Observation.goal` is the sentence after "Your task is to: ", including the full stop. The text
    after a reset is the whole opening text. The environment is deterministic.

    Args:
        assets: folder to which the paths of tasks are relative.
        engine: "native", or "textworld" for the official engine, which is slow and leaks memory.

    Raises:
        UserError: the official engine's packages are not installed.
    """

    def __init__(self, assets: Path | str, engine: str = "native") -> None:
        if engine == "textworld":
            require_textworld()
        self._arguments = (assets, engine)
        self.assets = Path(assets)
        self.engine = engine
        self._game: Game | None = None
        self._done = True
        self._task: Task | None = None
        self._played: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start the task from the beginning.

        Raises:
            UserError: the game's files are missing or malformed, or have changed since the task was
                created.
        """
        game = load_compiled(self.assets / task.path)
        task.check_content(game.content_hash, f"{game.folder}: the game")
        if self._game is not game:
            native = self.engine == "native"
            self._play = (
                NativeGame(game.compiled) if native else OfficialGame(read_game(game.folder))
            )
            self._game = game
        self._task, self._played, self._done = task, [], False
        text = self._play.reset()
        self._level = self._potential()
        return Observation(game.goal, text)

    def step(self, action: str) -> Step:
        check_action(action)
        if self._done:
            raise RuntimeError("`step` was called before `reset`, or after the game was won")
        text, admissible = self._play.act(action)
        self._played.append(action)
        before = self._level
        if admissible:
            self._level = self._potential()
        self._done = won = self._play.won
        return Step(
            observation=Observation(self._game.goal, text),
            env_reward=1.0 if won else 0.0,
            progress=self._level - before,
            done=won,
            success=won,
            info={"admissible": admissible},
        )

    def fork(self) -> "AlfworldEnv | None":
        """Return an independent copy in the same state, or None with the official engine."""
        if self.engine != "native":
            return None
        twin = self._twin()
        if self._game is not None:
            twin._play = self._play.fork()
        return twin

    def admissible_commands(self) -> list[str]:
        if self._game is None:
            raise RuntimeError("`admissible_commands` was called before `reset`")
        return self._play.admissible_commands()

    def situation(self) -> tuple[str, str]:
        """Return two fingerprints: of the output of `changed`, and of the admissible commands."""
        if self._game is None:
            raise RuntimeError("`situation` was called before `reset`")
        compiled = self._game.compiled
        changes = changed(self._view(), compiled.view(compiled.start))
        return fingerprint(changes), fingerprint(self.admissible_commands())

    def _potential(self) -> float:
        return self._game.potential(self._view(), self._play.won)

    def _view(self) -> View:
        compiled = self._game.compiled
        if self.engine == "native":
            return compiled.view(self._play.facts)
        return self._play.view(compiled.number)


def changed(view: View, start: View) -> list[tuple]:
    """Sorted list of facts: the agent's place, and facts that have become true since `start`.

    Only facts of predicates in `_CHANGES` are listed. For example, lamps that have been used are
    listed, because goals depend on them. Open receptacles are not listed, because an open
    receptacle at the agent's place already affects the admissible commands.
    """
    facts = [("atlocation", fact) for fact in view("atlocation")]
    for name in _CHANGES:
        facts += [(name, fact) for fact in view(name) - start(name)]
    return sorted(facts)
