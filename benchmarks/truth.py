"""Truth: how long it takes, and how fast continuations are against restarting each episode.

The whole task is the truth of 256 trajectories, groups of 8 on 32 games, with 16 continuations from
before every turn, as `snakemake truth` measures it: rollouts, continuations and sketches of
gradients. An eighth of the groups is measured, and the time is scaled up.

The other side restarts each continuation from its first turn: the game is played again from its
reset, and the policy reads the whole conversation anew before it samples the first new reply. Both
sides play the same continuations of one group, alternately; their returns must be the same. So
does the compiled engine, whose returns may differ where rounding moves a draw. All times are
process time on one thread.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from laptop import COMPILED, Laptop, prepare
from transformers.utils import logging

from hgrpo.evaluation.truth.measure import Measurement
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.policy.score_sketch import ScoreSketcher
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.continuations import Continuations, Point
from hgrpo.rollout.start import Start
from hgrpo.streams import key
from hgrpo.trajectories.played_groups import PlayedGroup

GROUPS, ROLLOUTS, EACH, TURNS, REPLY, IN_FLIGHT = 32, 8, 16, 20, 12, 256
MEASURED, COMPARED, REPEATS = 4, 1, 3
_STREAM = ("bench-truth",)


def measure(laptop: Laptop, scratch: Path) -> dict:
    """Minutes of the whole task, and continuations per second on both sides."""
    policy = laptop.policy()
    collector = laptop.collector(policy, IN_FLIGHT, TURNS, REPLY)
    config = TruthConfig(groups=MEASURED, continuations=EACH)
    began = time.process_time()
    sketcher = ScoreSketcher(policy, config.sketch, 1.0)
    measurement = Measurement(config, ROLLOUTS, 0, 0, collector, sketcher, scratch)
    groups = measurement.rollouts(laptop.tasks)
    for group in groups:
        measurement.measure(group)
    seconds = (time.process_time() - began) * GROUPS / MEASURED
    turns = sum(len(t.turns) for group in groups for t in group.trajectories)
    return {
        "trajectories": GROUPS * ROLLOUTS,
        "continuations_each": EACH,
        "continuations": EACH * turns * GROUPS // MEASURED,
        "minutes": seconds / 60,
        **_compared(
            collector,
            laptop.collector(policy, IN_FLIGHT, TURNS, REPLY, COMPILED),
            groups[:COMPARED],
        ),
    }


def _compared(collector: Collector, compiled: Collector, groups: Sequence[PlayedGroup]) -> dict:
    points = [
        Point(trajectory, turn, _STREAM)
        for group in groups
        for trajectory in group.trajectories
        for turn in range(len(trajectory.turns))
    ]
    sides = {
        "plain": lambda: Continuations(collector).returns(points, EACH),
        "restarted": lambda: _restarted(collector, points),
        "compiled": lambda: Continuations(compiled).returns(points, EACH),
    }
    Continuations(compiled).returns(points[:1], 1)  # compiles the kernel
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    found = {}
    for _ in range(REPEATS):
        for name, play in sides.items():
            took, found[name] = _timed(play)
            seconds[name].append(took)
    number = EACH * len(points)
    return {
        "per_s": {name: number / median(seconds[name]) for name in sides},
        "restarted_ratios": _ratios(seconds["restarted"], seconds["plain"]),
        "compiled_ratios": _ratios(seconds["plain"], seconds["compiled"]),
        "same_returns": {name: float(np.mean(found[name] == found["plain"])) for name in sides},
    }


def _ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    return sorted(a / b for a, b in zip(slow, fast, strict=True))


def _restarted(collector: Collector, points: Sequence[Point]) -> np.ndarray:
    """Returns of the same continuations, float64 [points, EACH], each with a start of its own."""
    starts = [
        Start(
            point.trajectory.task,
            point.trajectory.rollout,
            key(*point.stream, point.trajectory.rollout, point.turn, number),
            collector.turn_cap,
            # What episodes share is found by their trajectory, so each gets a copy. Continuations
            # from the same turn stand apart, because equal prefixes that begin together are shared.
            replace(point.trajectory),
            point.turn,
        )
        for number in range(EACH)
        for point in points
    ]
    returns = [trajectory.env_return for trajectory in collector.play(starts)]
    return np.array(returns).reshape(EACH, len(points)).T


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(prepare(Path(sys.argv[1])), Path(folder))))
