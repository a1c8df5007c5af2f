"""Step checkpoints: a run that is killed at any point and run again gives the same outputs."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Protocol

from hgrpo.atomic import atomic_folder
from hgrpo.errors import UserError
from hgrpo.learning.scratch import rows_file, step_folder, step_folders
from hgrpo.learning.state_file import read_state, write_state

_STATE = "learner.pt"


class Trained(Protocol):
    """Something that training moves from step to step; `STATE` names the keys of `state`."""

    STATE: tuple[str, ...]

    def state(self) -> dict[str, object]:
        """Everything that the next step depends on: tensors and plain values."""

    def load_state(self, state: Mapping[str, object]) -> None:
        """Put back what `state` returned."""


class Checkpoints:
    """The newest finished step of a run, kept in a folder that `locked_scratch` holds.

    Args:
        folder: also holds other files of the steps, such as a round's trajectories.
        every_s: least time between two saved steps, in seconds. It does not change the outcome,
            because a resumed run repeats the steps since the last saved one.
    """

    def __init__(self, folder: Path, every_s: float = 0.0):
        self.folder = Path(folder)
        self._every_s = every_s
        self._saved_at = monotonic()

    def save(self, trained: Trained, rows: Sequence[dict]) -> None:
        """Keep the state after the last step in `rows`, if `every_s` seconds have passed."""
        if monotonic() - self._saved_at < self._every_s:
            return
        newest = step_folder(self.folder, len(rows) - 1)
        with atomic_folder(newest) as scratch:
            write_state(trained.state(), scratch / _STATE)
            rows_file(scratch).write_text(json.dumps(rows))
        for folder in step_folders(self.folder):
            if folder != newest:
                shutil.rmtree(folder, ignore_errors=True)
        self._saved_at = monotonic()

    def restore(self, trained: Trained) -> list[dict]:
        """Bring `trained` to the newest step that was kept; return the log rows up to that step.

        Raises:
            UserError: a file is damaged. The message names it; no file is removed.
        """
        if not self.finished:
            return []
        last = step_folder(self.folder, self.finished - 1)
        try:
            state = read_state(last / _STATE, trained.STATE)
            rows = _read_rows(rows_file(last))
        except UserError as error:
            raise UserError(
                f"{error}; put a copy in its place, or remove {last} to go on from the step "
                "before if that is still there, or else from the start"
            ) from None
        trained.load_state(state)
        return rows

    @property
    def finished(self) -> int:
        """Number of steps that need not be repeated."""
        return max((int(path.name[-5:]) + 1 for path in step_folders(self.folder)), default=0)


def _read_rows(path: Path) -> list[dict]:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except ValueError as error:
        raise UserError(f"{path}: corrupted ({error})") from None
