"""Measures true advantages with rollouts and continuations, and saves every finished group."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hgrpo.atomic import atomic_folder
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.evaluation.truth.table import TRUTH_FILE, truth_table
from hgrpo.evaluation.truth.values import turn_truth
from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.policy.score_sketch import ScoreSketcher
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.continuations import Continuations, Point
from hgrpo.trajectories.played_groups import PlayedGroup, read_groups
from hgrpo.trajectories.store import (
    SEQUENCES_FILE,
    TURNS_FILE,
    concatenate,
    join_steps,
    write_step,
    write_table,
)

_COUNTS = "counts.json"


@dataclass(frozen=True)
class Measurement:
    """Measures the true advantages of one policy.

    Attributes:
        size: rollouts per game, at least 2.
        seed, round: parts of the names of random streams, in addition to the task.
        folder: folder of the rollouts and finished groups, from `job_scratch`.
    """

    config: TruthConfig
    size: int
    seed: int
    round: int
    collector: Collector
    sketcher: ScoreSketcher
    folder: Path

    def rollouts(
        self, panel: Sequence[Task], on_done: Callable[[], None] = lambda: None
    ) -> list[PlayedGroup]:
        """Play the groups to measure, or read those that an interrupted run has saved.

        Each group is a separate step. New groups are also read back from disk, so that a resumed
        run has the same inputs as an uninterrupted run.

        Raises:
            UserError: the panel has too few games, or saved rollouts are damaged.
        """
        stored = self.folder / "rollouts"
        if not stored.is_dir():
            tasks = truth_tasks(panel, self.config.groups, self.seed)
            stream = ("truth", self.seed, self.round)
            groups = self.collector.collect(tasks, self.size, stream, on_done)
            with atomic_folder(stored) as out:
                for step, group in enumerate(groups):
                    write_step(group, self.round, step, out)
                join_steps(out, len(groups), out)
        return read_groups(stored, panel)

    def finished(self, group: PlayedGroup) -> bool:
        """Whether the group's true advantages are already saved."""
        return self._part(group).is_dir()

    def measure(self, group: PlayedGroup) -> None:
        """Measure and save the true advantages of one group.

        Raises:
            ReplayError: when a turn was replayed, the environment's response was not the same.
        """
        began = time.perf_counter()
        continuations = Continuations(self.collector)
        trajectories = group.trajectories
        stream = ("truth-value", self.seed, self.round, trajectories[0].task.task_id)
        points = [Point(t, turn, stream) for t in trajectories for turn in range(len(t.turns))]
        each = self.config.continuations
        returns = continuations.returns(points, each)
        played = time.perf_counter()
        starts = np.cumsum([len(t.turns) for t in trajectories])[:-1]
        truths = [
            turn_truth(part, t.env_return)
            for part, t in zip(np.split(returns, starts), trajectories, strict=True)
        ]
        sketches = [self.sketcher.of_turns(t.token_ids, t.spans) for t in trajectories]
        table = truth_table(group, truths, each, np.concatenate(sketches))
        seconds = {
            "continuations_s": played - began,
            "sketches_s": time.perf_counter() - played,
        }
        with atomic_folder(self._part(group)) as out:
            write_table(table, out / TRUTH_FILE)
            text = json.dumps(continuations.report() | seconds) + "\n"
            (out / _COUNTS).write_text(text, encoding="utf-8")

    def write(self, groups: Sequence[PlayedGroup], out: Path) -> dict[str, float]:
        """Write the tables of rollouts and true advantages into `out`; return total counts.

        Raises:
            UserError: a saved part is damaged.
        """
        for name in (TURNS_FILE, SEQUENCES_FILE):
            shutil.copyfile(self.folder / "rollouts" / name, out / name)
        parts = [self._part(group) for group in groups]
        concatenate([part / TRUTH_FILE for part in parts], out / TRUTH_FILE)
        counts = [json.loads((part / _COUNTS).read_bytes()) for part in parts]
        return {name: sum(count[name] for count in counts) for name in counts[0]}

    def _part(self, group: PlayedGroup) -> Path:
        return self.folder / f"group_{group.step:05d}"


def truth_tasks(panel: Sequence[Task], groups: int, seed: int) -> list[Task]:
    """Training games on which true advantages are measured, the same for every policy.

    Raises:
        UserError: the panel has fewer than `groups` games.
    """
    if groups > len(panel):
        raise UserError(
            f"truth.groups: {groups} games requested, but the training panel has {len(panel)}"
        )
    order = generator("truth-tasks", seed).permutation(len(panel))[:groups]
    return [panel[index] for index in order]
