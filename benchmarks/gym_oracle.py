"""Wrapper of gym-sokoban, used to test our rules and to benchmark our speed.

gym-sokoban is installed by the extra `sokoban`. It imports `pkg_resources`, which newer versions of
setuptools do not contain. Therefore, this module defines a substitute for `pkg_resources` with the
only function that gym-sokoban calls.
"""

import contextlib
import importlib.util
import io
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from hgrpo.games.sokoban.level import Board, Level

# Codes of cells in gym-sokoban's arrays.
_WALL, _FLOOR, _TARGET, _BOX_ON_TARGET, _BOX, _PLAYER = range(6)
SMALLEST_IMAGE = "tiny_rgb_array"


def gym_class() -> type:
    """Import the class `SokobanEnv` of gym-sokoban, without the notice that gym prints."""
    if "pkg_resources" not in sys.modules and importlib.util.find_spec("pkg_resources") is None:
        sys.modules["pkg_resources"] = _resources()
    with contextlib.redirect_stderr(io.StringIO()):
        from gym_sokoban.envs.sokoban_env import SokobanEnv
    return SokobanEnv


def _resources() -> types.ModuleType:
    module = types.ModuleType("pkg_resources")

    def resource_filename(name: str, path: str) -> str:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        return str(Path(spec.origin).parent / path)

    module.resource_filename = resource_filename  # type: ignore[attr-defined]
    return module


class GymGame:
    """One level in gym-sokoban.

    The `reset` of gym-sokoban does not count boxes that start on a target. The first action would
    then receive a reward of +1 for such a box. This class counts the boxes in its own `reset`.
    """

    def __init__(self, level: Level, actions: int):
        self.env: Any = gym_class()(
            dim_room=(level.rows, level.columns),
            max_steps=actions,
            num_boxes=len(level.targets),
            reset=False,
        )
        self._level = level
        fixed = [
            _TARGET if cell in level.targets else _FLOOR if open_ else _WALL
            for cell, open_ in enumerate(level.free)
        ]
        self._fixed = np.array(fixed).reshape(level.rows, level.columns)
        self.reset()

    def reset(self) -> None:
        """Reset the level to its initial state."""
        env, level = self.env, self._level
        player, boxes = level.start
        state = self._fixed.copy().ravel()
        for box in boxes:
            state[box] = _BOX_ON_TARGET if box in level.targets else _BOX
        state[player] = _PLAYER
        env.room_fixed = self._fixed.copy()
        env.room_state = state.reshape(self._fixed.shape)
        env.player_position = np.argwhere(env.room_state == _PLAYER)[0]
        env.num_env_steps, env.reward_last = 0, 0
        env.boxes_on_target = level.placed(boxes)

    @property
    def board(self) -> Board:
        """The cell of the player, and the cells of the boxes."""
        state = self.env.room_state.ravel()
        boxes = np.flatnonzero((state == _BOX) | (state == _BOX_ON_TARGET))
        return int(np.flatnonzero(state == _PLAYER)[0]), tuple(boxes.tolist())

    def step(self, number: int) -> tuple[float, bool]:
        """Play action `number` of `ACTIONS`; return reward and whether the game is over."""
        _, reward, done, _ = self.env.step(number + 1, SMALLEST_IMAGE)
        return float(reward), bool(done)
