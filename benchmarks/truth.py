"""Measure the time to compute ground truth, and compare continuations with restarted episodes.

The games are those of `bakeoff_plus`, for which the project publishes ground truth. The task is to
compute the ground truth of 256 trajectories, in groups of 8 on 32 games, with 16 continuations from
the start of every turn. As in `snakemake truth` with the compiled engine, the task includes
rollouts, continuations and sketches of gradients. The benchmark measures an eighth of the groups
and multiplies the time by eight.

The baseline restarts each continuation from the first turn: the game is replayed from its reset,
and the policy processes the whole conversation before it samples the first new reply. The two
methods alternate and play the same continuations of one group, with the plain and with the compiled
engine. With the same engine, the two methods must give the same returns. The returns of the two
engines may differ if rounding changes a sampled token. All times are process time on one thread.

The number of tokens that each method feeds to the model is also counted. If each token costs the
same in both methods, the ratio of these numbers is an upper bound on the speed-up from continuing.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from laptop import COMPILED, Laptop, prepare
from transformers.utils import logging

from hgrpo.evaluation.truth.measure import Measurement
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.games.streams import key
from hgrpo.policy.score_sketch import ScoreSketcher
from hgrpo.rollout.branching import Start
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.continuations import Continuations, Point
from hgrpo.trajectories.played_groups import PlayedGroup

GROUPS, ROLLOUTS, EACH, REPLY, IN_FLIGHT = 32, 8, 16, 12, 256
MEASURED, COMPARED, REPEATS = 4, 1, 3
_STREAM = ("bench-truth",)


def measure(laptop: Laptop, scratch: Path) -> dict:
    """Return all measurements. Temporary files are written to `scratch`."""
    policy = laptop.policy()
    turns = laptop.env.turn_cap
    plain = laptop.collector(policy, IN_FLIGHT, turns, REPLY)
    compiled = laptop.collector(policy, IN_FLIGHT, turns, REPLY, COMPILED)
    compiled.play([Start(laptop.tasks[-1], 0, key(*_STREAM), turns)])  # compiles the kernel
    config = TruthConfig(groups=MEASURED, continuations=EACH)
    began = time.process_time()
    sketcher = ScoreSketcher(policy, config.sketch, 1.0)
    measurement = Measurement(config, ROLLOUTS, 0, 0, compiled, sketcher, scratch)
    groups = measurement.rollouts(laptop.tasks)
    for group in groups:
        measurement.measure(group)
    seconds = (time.process_time() - began) * GROUPS / MEASURED
    replies = sum(len(t.turns) for group in groups for t in group.trajectories)
    return {
        "trajectories": GROUPS * ROLLOUTS,
        "continuations_each": EACH,
        "continuations": EACH * replies * GROUPS // MEASURED,
        "minutes": seconds / 60,
        **_compared({"plain": plain, "compiled": compiled}, groups[:COMPARED]),
    }


def _compared(engines: Mapping[str, Collector], groups: Sequence[PlayedGroup]) -> dict:
    points = [
        Point(trajectory, turn, _STREAM)
        for group in groups
        for trajectory in group.trajectories
        for turn in range(len(trajectory.turns))
    ]
    sides = {}
    for name, collector in engines.items():
        sides[name] = partial(Continuations(collector).returns, points, EACH)
        sides[f"{name}, restarted"] = partial(_restarted, collector, points)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    returns = {}
    for _ in range(REPEATS):
        for name, play in sides.items():
            took, returns[name] = _timed(play)
            seconds[name].append(took)
    number = EACH * len(points)
    collector = next(iter(engines.values()))
    played = collector.play(_restarts(collector, points))
    whole = np.array([len(trajectory.token_ids) for trajectory in played]).reshape(EACH, -1)
    known = np.array([point.trajectory.turns[point.turn].span[0] for point in points])
    return {
        "tokens_fed": {"restarted": int(whole.sum()), "continued": int((whole - known).sum())},
        "per_s": {name: number / median(seconds[name]) for name in sides},
        "ratios": {
            f"{fast}/{slow}": sorted(
                b / a for a, b in zip(seconds[fast], seconds[slow], strict=True)
            )
            for fast in engines
            for slow in sides
            if slow != fast
        },
        "same_returns": {
            f"{one}/{other}": float(np.mean(returns[one] == returns[other]))
            for one in engines
            for other in sides
            if one != other
        },
    }


def _restarted(collector: Collector, points: Sequence[Point]) -> np.ndarray:
    """Returns of continuations that restart from the first turn, float64 [points, EACH]."""
    played = collector.play(_restarts(collector, points))
    returns = [trajectory.env_return for trajectory in played]
    return np.array(returns).reshape(EACH, len(points)).T


def _restarts(collector: Collector, points: Sequence[Point]) -> list[Start]:
    """Return all starts: first continuation number 0 of every point, then number 1, and so on."""
    return [
        Start(
            point.trajectory.task,
            point.trajectory.rollout,
            key(*point.stream, point.trajectory.rollout, point.turn, number),
            collector.turn_cap,
            # Copy the trajectory, because the engine shares work between episodes of the same
            # trajectory object.
            replace(point.trajectory),
            point.turn,
        )
        # The inner loop is over points, so that continuations of the same turn do not start
        # together. The engine shares equal prefixes of episodes that start together.
        for number in range(EACH)
        for point in points
    ]


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began = time.process_time()
    values = work()
    return time.process_time() - began, values


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(prepare(Path(sys.argv[1]), "alfworld-long"), Path(folder))))
