"""Commands run in forks of a process that has imported their libraries already.

The tests start a hundred commands. Importing Snakemake would take each of them 2 s, and importing
torch with transformers 7 s. A fork runs what `python -m <module>` runs.
"""

import contextlib
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path


class Forks:
    """A process that has imported `libraries`; no module that tests edit may be among them.

    Forks share what Python draws at its start: the hash seed and numpy's old generator. A test that
    a result does not depend on these must start a new process.

    Args:
        env: variables that libraries read when they are loaded.
    """

    def __init__(self, *libraries: str, env: Mapping[str, str] | None = None):
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            [sys.executable, __file__, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | (env or {}),
        )

    def run(
        self, module: str, *arguments: str, cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """`python -m module arguments` to its end, its output captured."""
        with tempfile.TemporaryDirectory() as folder, self._lock:
            out, err = Path(folder, "out"), Path(folder, "err")
            job = [module, arguments, str(cwd), dict(env), str(out), str(err)]
            print(json.dumps(job), file=self._server.stdin, flush=True)
            answer = self._server.stdout.readline()
            if not answer:
                raise RuntimeError(f"the process of the forks ended with {self._server.wait()}")
            code = int(answer)
            return subprocess.CompletedProcess(
                [module, *arguments],
                code,
                out.read_text(encoding="utf-8"),
                err.read_text(encoding="utf-8"),
            )

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


def _next_job() -> list | None:
    """In a fork, what it is to run; in the process itself None, after the last job."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return json.loads(line)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def _become(arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Take on what a fresh process would have been given."""
    for number, name in ((0, os.devnull), (1, out), (2, err)):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[:1] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv[1:] = arguments


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    job = _next_job()
    if job:
        module, *rest = job
        _become(*rest)
        # Past the end of this file the fork ends as any Python process does.
        runpy.run_module(module, run_name="__main__", alter_sys=True)
