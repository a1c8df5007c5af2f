"""Wraps the official engine (textworld and alfworld), with the interface of the native engine."""

import json
import tempfile
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games.alfworld.native import NOTHING
from hgrpo.games.alfworld.potential import View


def require_textworld() -> None:
    """Raise UserError unless the official packages can be imported."""
    try:
        import alfworld.agents.environment.alfred_tw_env  # noqa: F401
        import textworld.envs.pddl  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"the engine 'textworld' requires the official packages ({error}); "
            "install them with: pip install -e '.[alfworld]'"
        ) from None


class OfficialGame:
    """One game in the official engine, with alfworld's display names.

    Each instance leaks 2 to 3.5 MB until the process ends. Resets leak almost no memory.
    """

    def __init__(self, data: dict) -> None:
        require_textworld()
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        infos = textworld.EnvInfos(won=True, admissible_commands=True)
        self._env = AlfredDemangler(PddlEnv(infos))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "game.tw-pddl"
            path.write_text(json.dumps(data), encoding="utf-8")
            self._env.load(str(path))
        self._state = None

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    def reset(self) -> str:
        self._state = self._env.reset()
        return self._state.feedback

    def step(self, command: str) -> str:
        self._state, _, _ = self._env.step(command)
        return self._state.feedback

    def act(self, command: str) -> tuple[str, bool]:
        """Execute a command; return the feedback and whether the command was admissible."""
        valid = command.strip() in self._state["_valid_commands"]
        text = self.step(command)
        return text if valid else NOTHING, valid

    def admissible_commands(self) -> list[str]:
        return list(self._state["admissible_commands"])

    def view(self, number: dict[str, int]) -> View:
        """Return a function from predicate names to facts; `number` maps object ids to entities."""
        facts: dict[str, set] = {}
        for atom in self._state["_facts"]:
            fact = tuple(number[name] for name in atom.names)
            facts.setdefault(atom.name, set()).add(fact[0] if len(fact) == 1 else fact)
        return lambda name: facts.get(name, set())
