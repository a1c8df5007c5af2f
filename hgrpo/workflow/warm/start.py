"""Start the warm process of a run, and end it with the run."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hgrpo.stages.order import STAGES, runs_a_model
from hgrpo.study.study import Study
from hgrpo.workflow.warm.client import VARIABLE

# What jobs import, and that takes long.
_LIBRARIES = (
    "torch",
    "pandas",
    "pyarrow.parquet",
    "safetensors.torch",
    "transformers.models.qwen2.modeling_qwen2",
    "transformers.models.auto.modeling_auto",
    "peft",
    "numba",
)
# Libraries read these when they are imported. Snakemake sets them for each job, to its threads.
_THREADS = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
# Fewer jobs than this end before the process is ready.
_FEWEST = 4
# Bytes of a socket's path that Linux takes. Under a temporary folder with a longer path, jobs run
# by themselves.
_LONGEST = 107


def start(study: Study, stages: Iterable[str]) -> None:
    """Start the process if it saves time: many jobs that run a model on this machine's CPU.

    Args:
        study: the study to run.
        stages: the stage of each job to run here with one thread; the others run by themselves.
    """
    config = study.config
    if any(stage.gpu for stage in dict(config.resources).values()) or config.engine.kind != "torch":
        return
    if sum(stage in STAGES and runs_a_model(stage) for stage in stages) < _FEWEST:
        return
    folder = Path(tempfile.mkdtemp(prefix="hgrpo-warm-"))
    path = folder / "socket"
    if len(os.fsencode(path)) > _LONGEST:
        folder.rmdir()
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "hgrpo.workflow.warm.server", path, *_LIBRARIES],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | dict.fromkeys(_THREADS, "1") | {"TQDM_MININTERVAL": "5"},
        # Ctrl-C reaches the clients, which pass it on to the forks.
        start_new_session=True,
    )
    os.environ[VARIABLE] = str(path)

    def end() -> None:
        process.kill()  # it may still be importing
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
