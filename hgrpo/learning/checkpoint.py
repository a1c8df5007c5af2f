"""Step checkpoints inside a round: kill the process at any point, run it again, same outputs."""

import fcntl
import io
import json
import os
import pickle
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import torch

from hgrpo.atomic import atomic_folder
from hgrpo.errors import UserError
from hgrpo.learning.update import Learner
from hgrpo.trajectories.store import concatenate, write_table

_STATE, _ROWS = "learner.pt", "rows.json"
_KEYS = {"weights", "optimiser", "kl_coefficient"}
# What reading a damaged archive raises, by zipfile and by torch.
_DAMAGE = (
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    struct.error,
    zlib.error,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


class Checkpoints:
    """Checkpoints in a scratch folder of the round's own; see `locked_scratch`."""

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def save(self, learner: Learner, rows: list[dict], tables: dict[str, pa.Table]) -> None:
        """Write the state after step len(rows) - 1, and that step's rollouts."""
        step = len(rows) - 1
        for name, table in tables.items():
            write_table(table, self._part(name, step))
        with atomic_folder(self._step(step)) as scratch:
            write_learner_state(learner, scratch / _STATE)
            (scratch / _ROWS).write_text(json.dumps(rows))
        if step > 0:
            shutil.rmtree(self._step(step - 1), ignore_errors=True)

    def restore(self, learner: Learner) -> list[dict]:
        """Put the learner where the last finished step left it; that step's log rows.

        Raises:
            UserError: naming the file: it is damaged. All files stay where they are.
        """
        if not self.finished:
            return []
        last = self._step(self.finished - 1)
        try:
            state, rows = read_learner_state(last / _STATE), _read_rows(last / _ROWS)
        except UserError as error:
            raise UserError(
                f"{error}; put a copy in its place, or remove {last} to go on from the step "
                "before, where that is still there, or else to begin the round anew"
            ) from None
        load_learner_state(learner, state)
        return rows

    @property
    def finished(self) -> int:
        """Number of steps that are through."""
        return max((int(path.name[-5:]) + 1 for path in self._folder.glob("step_*")), default=0)

    def write_rollouts(self, name: str, steps: int, target: Path) -> None:
        """Join the rollouts of all steps into one Parquet file."""
        concatenate([self._part(name, step) for step in range(steps)], target)

    def _step(self, step: int) -> Path:
        return self._folder / f"step_{step:05d}"

    def _part(self, name: str, step: int) -> Path:
        return self._folder / f"{name}_{step:05d}.parquet"


def learner_state(learner: Learner) -> dict:
    """What training carries from step to step and from round to round."""
    return {
        "weights": learner.policy.trained_state(),
        "optimiser": learner.optimiser.state_dict(),
        "kl_coefficient": learner.kl.coefficient,
    }


def write_learner_state(learner: Learner, path: Path) -> None:
    """Write `learner_state`; OSError when the disk is full."""
    # torch.save on a path reports a full disk as a RuntimeError; a plain write does not.
    buffer = io.BytesIO()
    torch.save(learner_state(learner), buffer)
    path.write_bytes(buffer.getvalue())


def read_learner_state(path: Path) -> dict:
    """What `write_learner_state` wrote.

    Nothing but tensors and plain values is unpickled.

    Raises:
        UserError: it is missing, or damaged in any byte that matters.
    """
    try:
        content = path.read_bytes()
        # torch writes a checksum of each part of its archive, and does not look at it when reading.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"{part} does not match its checksum")
        state = torch.load(io.BytesIO(content), weights_only=True)
        if not isinstance(state, dict) or state.keys() != _KEYS:
            raise ValueError(f"no mapping of {', '.join(sorted(_KEYS))}")
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: corrupted ({reason})") from None
    return state


def _read_rows(path: Path) -> list[dict]:
    try:
        rows = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except ValueError as error:
        raise UserError(f"{path}: corrupted ({error})") from None
    return rows


def load_learner_state(learner: Learner, state: dict) -> None:
    """Put back what `learner_state` returned."""
    learner.policy.load_trained_state(state["weights"])
    learner.optimiser.load_state_dict(state["optimiser"])
    learner.kl.coefficient = state["kl_coefficient"]


@contextmanager
def locked_scratch(root: Path, name: str) -> Iterator[Path]:
    """The folder `root/name`, held by this process alone; removed when the block succeeds.

    `name` must change with anything that would make a resumed round differ: config, code, inputs.
    Folders of other names under `root` are remains of superseded runs and are removed.

    Raises:
        UserError: another process holds it.
    """
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{root}: another process is running this round") from None
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        for other in root.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other, ignore_errors=True)
        folder = root / name
        folder.mkdir(exist_ok=True)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
