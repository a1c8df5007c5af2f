"""The part of the Kubernetes API that the executor asks for; a pod is a process on this machine.

A pod gets the container's command, an empty folder of its own, the variables that the manifest
takes from its secret, and the programs of this Python. There are no images, limits or nodes. This
shows whether a job finds what it needs in the bucket, and what it asks of a cluster, but not
whether a cluster would grant it.
"""

import base64
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Cluster:
    """Requests to the cluster, and its pods.

    Attributes:
        jobs: name -> manifest, in the order of submission.
        output: name -> what the pod printed.
    """

    def __init__(self, root: Path, evicted: Callable[[str], bool]):
        self._root = root
        self._evicted = evicted
        self._processes: dict[str, subprocess.Popen | None] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self.jobs: dict[str, dict] = {}
        self.output: dict[str, Path] = {}
        bin = root / "bin"
        bin.mkdir(parents=True)
        # The executor has every pod install the storage plugin, which is there already.
        (bin / "pip").write_text("#!/bin/sh\n", encoding="utf-8")
        (bin / "pip").chmod(0o755)

    def answer(self, method: str, path: str, body: dict | None) -> tuple[int, dict]:
        """Status and body of the answer to a request."""
        kind, _, name = re.search(r"/namespaces/[^/]+/(\w+)(/([^/?]+))?", path).groups()
        if kind == "secrets" and method == "POST":
            self.secrets[body["metadata"]["name"]] = body["data"]
            return 201, body
        if kind == "secrets" and method == "DELETE":
            del self.secrets[name]
            return 200, {"kind": "Status", "status": "Success"}
        if kind == "jobs" and method == "POST":
            self._start(body)
            return 201, body
        if kind == "jobs" and method == "GET":
            return 200, self._status(name)
        if kind == "jobs" and method == "DELETE":
            return 200, {"kind": "Status", "status": "Success"}
        if kind == "pods" and method == "GET":
            return 200, {"kind": "PodList", "apiVersion": "v1", "items": []}
        return 404, {"kind": "Status", "status": "Failure", "code": 404}

    def _start(self, manifest: dict) -> None:
        name = manifest["metadata"]["name"]
        self.jobs[name] = manifest
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        command = [*container["command"], *container["args"]]
        if self._evicted(container["args"][-1]):
            self._processes[name] = None
            return
        folder = self._root / "pods" / name
        folder.mkdir(parents=True)
        programs = [str(self._root / "bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"]
        environment = {"PATH": os.pathsep.join(programs), "HOME": str(folder)}
        for variable in container["env"]:
            source = variable["valueFrom"]["secretKeyRef"]
            value = self.secrets[source["name"]][source["key"]]
            environment[variable["name"]] = base64.b64decode(value).decode()
        self.output[name] = self._root / "pods" / f"{name}.log"
        with self.output[name].open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log
            )

    def _status(self, name: str) -> dict:
        process = self._processes[name]
        code = 1 if process is None else process.poll()
        state = {"active": 1} if code is None else {"failed" if code else "succeeded": 1}
        return self.jobs[name] | {"status": state}

    def end(self) -> None:
        """End the pods that still run."""
        for process in self._processes.values():
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def running_cluster(root: Path, evicted: Callable[[str], bool]) -> Iterator[tuple[Cluster, Path]]:
    """The cluster, and the file that KUBECONFIG is to name.

    Args:
        evicted: takes a pod's command; says whether the pod fails without having been run.
    """
    cluster = Cluster(root, evicted)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = cluster.answer(self.command, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = root / "kubeconfig"
    config.write_text(
        json.dumps(_kubeconfig(f"http://127.0.0.1:{server.server_port}")), encoding="utf-8"
    )
    try:
        yield cluster, config
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        cluster.end()


def _kubeconfig(address: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }
