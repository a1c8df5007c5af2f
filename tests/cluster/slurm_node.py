"""A real Slurm of one node: slurmctld and slurmd of Debian's packages on this machine.

It uses no systemd, no control groups and no accounting database; munge has its own key and socket.
The node has two partitions, `cpu` and `gpu`, and a pretended GPU: /dev/null under a GPU's name.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
# The executor does not pass SLURM_CONF on to jobs, so the files must stand where Slurm looks first.
ETC = Path("/etc/slurm")
OURS = "# Written by the tests of hgrpo, and removed by them.\n"


def reason_to_skip() -> str | None:
    """Why no Slurm can be brought up here; None where it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        packages = "slurmctld slurmd slurm-client munge"
        return f"{', '.join(missing)} not installed (Debian: apt-get install {packages})"
    if os.geteuid():
        return "only root can bring up slurmd"
    for name in _configuration(Path("/"), 0, 0):
        path = ETC / name
        if path.exists() and not path.read_text(encoding="utf-8").startswith(OURS):
            return f"{path} belongs to a Slurm that is not the tests'"
    return None


@contextmanager
def running_node(root: Path) -> Iterator[None]:
    """Slurm is up within the block; its state and logs are in `root`.

    Raises:
        RuntimeError: Slurm does not come up. The message has the last lines of its logs.
    """
    for name in ("state", "spool", "log", "munge"):
        (root / name).mkdir(parents=True)
    # It is held to the end, so that another session's tests wait for their turn at /etc/slurm.
    lock = (Path(tempfile.gettempdir()) / "hgrpo-slurm-tests.lock").open("w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    files = _configuration(root, *_free_ports(2))
    ETC.mkdir(exist_ok=True)
    for name, text in files.items():
        (ETC / name).write_text(OURS + text, encoding="utf-8")
    daemons: list[subprocess.Popen] = []
    try:
        daemons.append(_munged(root / "munge"))
        daemons.append(_start("slurmctld", "-D", "-c", log=root / "log/slurmctld.out"))
        daemons.append(_start("slurmd", "-D", log=root / "log/slurmd.out"))
        _wait_until_idle(root, daemons)
        try:
            yield
        finally:
            _cancel_everything()
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in reversed(daemons):
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in files:
            (ETC / name).unlink(missing_ok=True)
        lock.close()


def jobs(*options: str) -> list[dict[str, str]]:
    """Every job that Slurm knows, finished ones as well, in the order of submission.

    Keys: id, state, run (the run ID that snakemake printed), rule (in the executor's words),
    partition, memory, gpus.
    """
    fields = ("jobid", "state", "name", "comment", "partition", "minmemory", "tres-per-job")
    shape = ",".join(f"{field}:|" for field in fields)
    command = ["squeue", "--states=all", "--noheader", "--sort=i", f"--Format={shape}", *options]
    lines = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True
    ).stdout.splitlines()
    names = ("id", "state", "run", "rule", "partition", "memory", "gpus")
    return [dict(zip(names, line.split("|"), strict=False)) for line in lines]


def listening(program: str) -> set[str]:
    """Addresses, in /proc's hex, on which processes of a program accept connections."""
    listed = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path("/proc/net", name).read_text(encoding="utf-8").splitlines()[1:]
    ]
    # Columns: number, local address:port, remote one, state (0A: listens), ..., inode.
    sockets = {f"socket:[{row[9]}]": row[1].split(":")[0] for row in listed if row[3] == "0A"}
    addresses = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "comm").read_text(encoding="utf-8").strip() == program:
                addresses |= {sockets.get(os.readlink(fd)) for fd in (folder / "fd").iterdir()}
    return addresses - {None}


def _configuration(root: Path, controller_port: int, node_port: int) -> dict[str, str]:
    """Text of each file in /etc/slurm."""
    # Two processors even where there is one: a test wants two jobs at a time.
    host = socket.gethostname().split(".")[0]
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory = pages * page // 2**20 * 8 // 10
    node = f"CPUs={max(2, os.cpu_count())} RealMemory={memory} Gres=gpu:test:1"
    slurm = f"""\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=3600
KillWait=1
MailProg=/bin/true
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 {node} State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES DefMemPerCPU=500 MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=ALL DefMemPerCPU=500 MaxTime=INFINITE State=UP
"""
    return {
        "slurm.conf": slurm,
        "gres.conf": f"NodeName={host} Name=gpu Type=test File=/dev/null\n",
        "cgroup.conf": "CgroupPlugin=cgroup/v1\n",
    }


def _path() -> str:
    """Where daemons are: some users' PATH has no sbin."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _start(*command: str, log: Path) -> subprocess.Popen:
    program = shutil.which(command[0], path=_path())
    with log.open("wb") as output:
        return subprocess.Popen(
            [program, *command[1:]], stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )


def _munged(folder: Path) -> subprocess.Popen:
    key = folder / "key"
    key.touch(mode=0o400)
    key.write_bytes(os.urandom(1024))
    return _start(
        "munged",
        "--foreground",
        "--force",
        f"--key-file={key}",
        f"--socket={folder}/socket",
        f"--pid-file={folder}/pid",
        f"--seed-file={folder}/seed",
        f"--log-file={folder}/log",
        log=folder / "out",
    )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _wait_until_idle(root: Path, daemons: list[subprocess.Popen], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not any(daemon.poll() is not None for daemon in daemons):
        reply = subprocess.run(
            ["sinfo", "--noheader", "--partition=gpu", "--format=%T"],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if reply.stdout.strip() == "idle":
            return
        time.sleep(0.1)
    logs = [
        f"{path}:\n{path.read_text(encoding='utf-8')[-1500:]}"
        for path in sorted(root.glob("*/*log*"))
        if path.is_file()
    ]
    logs += [
        f"{path}:\n{path.read_text(encoding='utf-8')[-1500:]}"
        for path in sorted(root.glob("*/*out"))
    ]
    raise RuntimeError("Slurm does not come up\n" + "\n".join(logs))


def _cancel_everything(seconds: float = 20) -> None:
    """No job outlives its node."""
    subprocess.run(["scancel", "--user=root"], check=False)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = subprocess.run(
            ["squeue", "--noheader"], capture_output=True, encoding="utf-8", check=False
        )
        if not left.stdout.strip():
            return
        time.sleep(0.2)
