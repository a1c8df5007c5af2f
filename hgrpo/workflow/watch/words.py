"""Words for what a job does and for how long."""

from hgrpo.workflow.watch.status import JobStatus, State


def doing(status: JobStatus) -> str:
    """What a job does, such as `running, step 70/200, 2 min left`."""
    said = [str(status.state)]
    if status.state is State.SILENT:
        said = [f"last heard {duration(status.heard_s or 0.0)} ago"]
    elif status.state is State.STOPPED:
        said = [f"{ended(status)} {duration(status.heard_s or 0.0)} ago"]
    if status.begun and status.tail and status.tail.count:
        said.append(status.tail.count)
    if status.begun and status.tail and status.tail.test is not None:
        said.append(f"test {status.tail.test:.1%}")
    if status.left_s is not None:
        said.append(f"{duration(status.left_s)} left")
    return ", ".join(said)


def ended(status: JobStatus) -> str:
    """How a stopped job ended: `failed` or `interrupted`."""
    said = status.tail.ended if status.tail else ""
    return "interrupted" if said.startswith("interrupted:") else "failed"


def duration(seconds: float) -> str:
    """Seconds as text, such as `45 s`, `12 min` or `3 h 05 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
