"""ALFWorld as a TextEnv, with the native engine or the official one."""

from pathlib import Path

from hgrpo.envs.alfworld.gamefile import Game, load_compiled, read_game
from hgrpo.envs.alfworld.native import NativeGame
from hgrpo.envs.alfworld.potential import Potential, View
from hgrpo.envs.alfworld.situation import changed
from hgrpo.envs.alfworld.textworld_engine import OfficialGame, require_textworld
from hgrpo.envs.base import Observation, Step, Task
from hgrpo.envs.fingerprint import fingerprint
from hgrpo.envs.replayed import PickledByReplay
from hgrpo.errors import UserError

ENGINES = ("native", "textworld")


class AlfworldEnv(PickledByReplay):
    """Household games: the winning step pays 1.0, every other step 0.0.

    `Observation.goal` is the sentence after "Your task is to: ", with its full stop; a reset's
    text is the whole opening. The environment draws nothing at random.

    Args:
        assets: the folder that task paths are relative to.
        engine: "native", or "textworld" for the official packages (slow, leaks per game).

    Raises:
        UserError: an unknown engine, or the official one without its packages.
    """

    def __init__(self, assets: Path | str, engine: str = "native") -> None:
        if engine not in ENGINES:
            raise UserError(f"unknown ALFWorld engine {engine!r}: one of {', '.join(ENGINES)}")
        if engine == "textworld":
            require_textworld()
        self._arguments = (assets, engine)
        self.assets = Path(assets)
        self.engine = engine
        self._play: _NativePlay | _OfficialPlay | None = None
        self._game: Game | None = None
        self._done = True
        self._task: Task | None = None
        self._played: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start `task` over.

        Raises:
            UserError: the game's files are malformed, or have changed since the task was made.
        """
        game = load_compiled(self.assets / task.path)
        task.check_content(game.content_hash, f"{game.folder}: the game")
        if self._play is None or self._game is not game:
            self._play = _NativePlay(game) if self.engine == "native" else _OfficialPlay(game)
        self._task, self._game = task, game
        text = self._play.reset()
        self._level = self._play.level()
        self._done = False
        self._played = []
        return self._observe(text)

    def _observe(self, text: str) -> Observation:
        return Observation(self._game.goal, text)

    def step(self, action: str) -> Step:
        if self._done:
            raise RuntimeError("step before reset, or after the game was won")
        text, admissible, moved = self._play.act(action)
        self._played.append(action)
        gain = 0.0
        if moved:
            level = self._play.level()
            gain, self._level = level - self._level, level
        won = self._play.won
        self._done = won
        return Step(
            observation=self._observe(text),
            env_reward=1.0 if won else 0.0,
            progress=gain,
            done=won,
            success=won,
            info={"admissible": admissible},
        )

    def admissible_commands(self) -> list[str]:
        """Commands that the engine accepts in this state, sorted; computed on call."""
        if self._play is None:
            raise RuntimeError("admissible_commands before reset")
        return self._play.admissible_commands()

    def situation(self) -> tuple[str, str]:
        """Fingerprints of the place with all changes since the start, and of the commands."""
        if self._play is None:
            raise RuntimeError("situation before reset")
        return fingerprint(self._play.changed()), fingerprint(self._play.admissible_commands())


class _NativePlay:
    """The native engine, with the potential of its facts."""

    def __init__(self, game: Game) -> None:
        self._engine = NativeGame(game.compiled)
        self._predicate = game.compiled.program.vocabulary.predicates
        self._potential = game.potential
        self._start = self._view(game.compiled.start.sets)
        self._moves = game.moves
        self.reset = self._engine.reset
        self.admissible_commands = self._engine.admissible_commands

    @property
    def won(self) -> bool:
        return self._engine.won

    def act(self, command: str) -> tuple[str, bool, bool]:
        """Feedback, whether the command was admissible, and whether progress may have changed."""
        text, index = self._engine.act(command)
        return text, index >= 0, index >= 0 and self._moves[index]

    def level(self) -> float:
        return self._potential.value(self._view(self._engine.facts.sets), self._engine.won)

    def changed(self) -> list[tuple]:
        """The agent's place, and the facts that differ from the start."""
        return changed(self._view(self._engine.facts.sets), self._start)

    def _view(self, sets: list[set]) -> View:
        number = self._predicate
        return lambda name: sets[number[name]] if name in number else set()


class _OfficialPlay:
    """The official engine; its facts are read by name."""

    def __init__(self, game: Game) -> None:
        self._engine = OfficialGame(read_game(game.folder))
        self._game = game
        self.admissible_commands = self._engine.admissible_commands

    @property
    def won(self) -> bool:
        return self._engine.won

    def reset(self) -> str:
        text = self._engine.reset()
        program = self._game.compiled.program
        names = {n: name for name, n in program.vocabulary.predicates.items()}
        fluent = {names[number] for number in program.fluent}
        goal = self._game.compiled.goal_formula
        self._start = self._view()
        self._potential = Potential(goal, fluent, self._start, lambda name: name)
        return text

    def act(self, command: str) -> tuple[str, bool, bool]:
        text, index = self._engine.act(command)
        return text, index >= 0, index >= 0

    def level(self) -> float:
        return self._potential.value(self._view(), self._engine.won)

    def changed(self) -> list[tuple]:
        """As the native engine gives it, in that engine's entity numbers."""
        number = self._game.compiled.number
        return [
            (name, number[fact] if isinstance(fact, str) else tuple(number[part] for part in fact))
            for name, fact in changed(self._view(), self._start)
        ]

    def _view(self) -> View:
        facts: dict[str, set] = {}
        for name, *args in self._engine.atoms():
            facts.setdefault(name, set()).add(args[0] if len(args) == 1 else tuple(args))
        return lambda name: facts.get(name, set())
