"""ALFWorld as a TextEnv, with the native engine or the official one."""

from pathlib import Path

from hgrpo.envs.alfworld.gamefile import Game, load_compiled, read_game
from hgrpo.envs.alfworld.native import NativeGame
from hgrpo.envs.alfworld.potential import View
from hgrpo.envs.alfworld.situation import changed
from hgrpo.envs.alfworld.textworld_engine import OfficialGame, require_textworld
from hgrpo.envs.base import Observation, PickledByReplay, Step, Task, fingerprint
from hgrpo.errors import UserError

ENGINES = ("native", "textworld")


class AlfworldEnv(PickledByReplay):
    """Household games: the winning step pays 1.0, every other step 0.0.

    `Observation.goal` is the sentence after "Your task is to: ", with its full stop; a reset's
    text is the whole opening. The environment draws nothing at random.

    Args:
        assets: the folder that task paths are relative to.
        engine: "native", or "textworld" for the official engine, which is slow and leaks memory.

    Raises:
        UserError: the engine is unknown, or the official engine's packages are not installed.
    """

    def __init__(self, assets: Path | str, engine: str = "native") -> None:
        if engine not in ENGINES:
            raise UserError(f"unknown ALFWorld engine {engine!r}: one of {', '.join(ENGINES)}")
        if engine == "textworld":
            require_textworld()
        self._arguments = (assets, engine)
        self.assets = Path(assets)
        self.engine = engine
        self._play: _NativePlay | None = None
        self._done = True
        self._task: Task | None = None
        self._played: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start the task from the beginning.

        Raises:
            UserError: the game's files are malformed, or have changed since the task was made.
        """
        game = load_compiled(self.assets / task.path)
        task.check_content(game.content_hash, f"{game.folder}: the game")
        if self._play is None or self._play.game is not game:
            self._play = _NativePlay(game) if self.engine == "native" else _OfficialPlay(game)
        self._task = task
        text = self._play.engine.reset()
        self._level = self._play.level()
        self._done = False
        self._played = []
        return Observation(game.goal, text)

    def step(self, action: str) -> Step:
        if self._done:
            raise RuntimeError("step before reset, or after the game was won")
        text, admissible, moved = self._play.act(action)
        self._played.append(action)
        gain = 0.0
        if moved:
            level = self._play.level()
            gain, self._level = level - self._level, level
        self._done = won = self._play.engine.won
        return Step(
            observation=Observation(self._play.game.goal, text),
            env_reward=1.0 if won else 0.0,
            progress=gain,
            done=won,
            success=won,
            info={"admissible": admissible},
        )

    def admissible_commands(self) -> list[str]:
        if self._play is None:
            raise RuntimeError("admissible_commands before reset")
        return self._play.engine.admissible_commands()

    def situation(self) -> tuple[str, str]:
        """Two fingerprints: of the place and all changes since the start, and of the commands."""
        if self._play is None:
            raise RuntimeError("situation before reset")
        return fingerprint(self._play.changed()), fingerprint(self.admissible_commands())


class _NativePlay:
    """One game in the native engine."""

    def __init__(self, game: Game) -> None:
        self.engine = NativeGame(game.compiled)
        self.game = game
        self._start = self._view(game.compiled.start.sets)

    def act(self, command: str) -> tuple[str, bool, bool]:
        """Feedback, whether the command was admissible, and whether progress may have changed."""
        text, index = self.engine.act(command)
        return text, index >= 0, index >= 0 and self.game.moves[index]

    def level(self) -> float:
        """The potential of the current state."""
        return self.game.potential.value(self._facts(), self.engine.won)

    def changed(self) -> list[tuple]:
        return changed(self._facts(), self._start)

    def _facts(self) -> View:
        return self._view(self.engine.facts.sets)

    def _view(self, sets: list[set]) -> View:
        number = self.game.compiled.program.vocabulary.predicates
        return lambda name: sets[number[name]] if name in number else set()


class _OfficialPlay(_NativePlay):
    """One game in the official engine; facts use the native engine's indices of entities."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.engine = OfficialGame(read_game(game.folder))

    def act(self, command: str) -> tuple[str, bool, bool]:
        text, index = self.engine.act(command)
        return text, index >= 0, index >= 0

    def _facts(self) -> View:
        number = self.game.compiled.number
        facts: dict[str, set] = {}
        for name, *args in self.engine.atoms():
            fact = tuple(number[arg] for arg in args)
            facts.setdefault(name, set()).add(fact[0] if len(fact) == 1 else fact)
        return lambda name: facts.get(name, set())
