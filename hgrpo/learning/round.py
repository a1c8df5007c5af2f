"""One round of reinforcement learning; each step is collect -> credit -> advantages -> update."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all
from hgrpo.envs.base import Task
from hgrpo.learning.batch import (
    GroupAdvantages,
    TrainingSequence,
    forget_advantages,
    group_advantages,
    scale_advantages,
    training_sequences,
)
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.critic import Critic
from hgrpo.learning.critic_advantages import estimate, store_advantages
from hgrpo.learning.filters import takes_part
from hgrpo.learning.log_row import advantage_row, rollout_row, trained_row
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.optimisers import set_lr
from hgrpo.learning.tasks import further_tasks, tasks_of_step
from hgrpo.learning.update import Learner
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.collector import Collector
from hgrpo.streams import generator, training_step
from hgrpo.trajectories.store import write_step
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class RoundId:
    """A round's method, seed and number; the number is `index` and counts from 1."""

    method: MethodConfig
    seed: int
    index: int


@dataclass
class Round:
    """A round of training; `run` plays it and resumes after the last saved step.

    Attributes:
        id: names the round's random streams.
        panel: the training tasks.
        checkpoints: save each finished step; their folder also gets the trajectories.
        rows: the log so far, one row per step.
    """

    id: RoundId
    panel: Sequence[Task]
    collector: Collector
    assigner: CreditAssigner
    learner: Learner
    checkpoints: Checkpoints
    rows: list[dict] = field(default_factory=list)

    def run(self, on_step: Callable[[dict], None], on_trajectory: Callable[[], None]) -> list[dict]:
        """Play the remaining steps; return all steps' log rows, including those before a resume.

        Args:
            on_step: called with each new log row.
            on_trajectory: called each time this process finishes a trajectory.

        Raises:
            TrainingError: training cannot go on. The last finished step is kept.
            UserError: a checkpoint is damaged, or the assigner returned invalid credit.
        """
        self.rows = self.checkpoints.restore(self.learner)
        for step in range(len(self.rows), self.learner.training.steps_per_round):
            self._step(step, on_trajectory)
            on_step(self.rows[-1])
        return self.rows

    def _step(self, step: int, on_trajectory: Callable[[], None]) -> None:
        began = time.perf_counter()
        training = self.learner.training
        groups, advantages, synced, seconds = self._play(step, on_trajectory)
        reported = self._report()
        rule = self.id.method.dead_groups
        penalised = training.penalises_dead_groups(self.learner.kl.coefficient)
        trained = [takes_part(advantage.dead, rule, penalised) for advantage in advantages]
        if training.advantage_rms is not None and self.learner.critic is None:
            alive = [g for g, a in zip(groups, advantages, strict=True) if not a.dead]
            factor = scale_advantages(_flat(alive), training.advantage_rms)
            reported |= {"advantage_factor": factor}
        diagnostics = self._update(groups, trained, step)
        elapsed = time.perf_counter() - began
        played = [group.trajectories for group in groups]
        self.rows.append(
            {"step": step, "round": self.id.index}
            | rollout_row(played)
            | trained_row(played, trained)
            | advantage_row(played, advantages)
            | reported
            | diagnostics
            | synced
            | {"lr": self.learner.optimiser.param_groups[0]["lr"]}
            | seconds
            | {"update_s": elapsed - sum(seconds.values()), "elapsed_s": elapsed}
        )
        if training.dynamic_sampling is not None:
            forget_advantages(played, trained)
        self._save(groups, step)

    def _play(
        self, step: int, on_trajectory: Callable[[], None]
    ) -> tuple[list[Group], list[GroupAdvantages], dict, dict[str, float]]:
        """Play and credit the step's tasks, and further ones as long as dynamic sampling asks.

        Returns the groups, their advantages, log entries about the engine, and seconds.
        """
        training, began = self.learner.training, time.perf_counter()
        where = self.panel, self.id.seed, self.id.index, step, training
        tasks, further = tasks_of_step(*where), further_tasks(*where)
        synced = self._load_engine(tasks)
        groups: list[Group] = []
        advantages: list[GroupAdvantages] = []
        seconds = {"collect_s": 0.0, "credit_s": 0.0}
        while tasks:
            batch = self._collect(tasks, step, on_trajectory)
            collected = time.perf_counter()
            groups += batch
            advantages += [
                group_advantages(group, credit, self.id.method, training)
                for group, credit in zip(batch, self._credit(batch), strict=True)
            ]
            seconds["collect_s"] += collected - began
            began = time.perf_counter()
            seconds["credit_s"] += began - collected
            # One task for each missing group, so that no living group is played in vain.
            missing = training.tasks_per_step - sum(not each.dead for each in advantages)
            tasks, further = further[:missing], further[missing:]
        return groups, advantages, synced, seconds

    def _load_engine(self, tasks: Sequence[Task]) -> dict[str, float | None]:
        """Load the policy's weights into the engine, check the result, and return log entries."""
        engine, policy = self.collector.engine, self.learner.policy
        engine.load_weights(policy)
        return check_sync(engine, policy, tasks[0].task_id)

    def _collect(
        self, tasks: Sequence[Task], step: int, on_trajectory: Callable[[], None]
    ) -> list[Group]:
        """Play one group per task. Each rank plays some of the groups and receives all of them."""
        ranks, rollouts = self.learner.ranks, self.learner.training.rollouts_per_task
        stream = training_step(self.id.seed, self.id.index, step, self.id.method.stream)
        mine = self.collector.collect(ranks.share(tasks), rollouts, stream, on_trajectory)
        return [Group(group, (*stream, group[0].task.task_id)) for group in ranks.join(mine)]

    def _credit(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Credit of every turn of every group.

        Only the first rank computes the credit, so that no answer of a judge is paid for twice.
        """
        ranks = self.learner.ranks
        return ranks.broadcast(assign_all(self.assigner, groups) if ranks.first else None)

    def _report(self) -> dict[str, float]:
        """The assigner's report for the log, from the first rank."""
        ranks = self.learner.ranks
        return dict(ranks.broadcast(self.assigner.report() if ranks.first else None))

    def _update(self, groups: Sequence[Group], trained: Sequence[bool], step: int) -> dict:
        """Update on the groups that are `trained` on, in random order; return diagnostics."""
        self._set_lr(step)
        alive = np.flatnonzero(np.repeat(trained, [len(group.trajectories) for group in groups]))
        rng = generator("minibatches", self.id.seed, self.id.index, step)
        order = alive[rng.permutation(len(alive))].tolist()
        self.collector.engine.sleep()
        sequences = training_sequences(_flat(groups))
        if self.learner.critic is None:
            return self.learner.update(sequences, order)
        return self._update_both(self.learner.critic, groups, sequences, order, step)

    def _update_both(
        self,
        critic: Critic,
        groups: Sequence[Group],
        sequences: Sequence[TrainingSequence],
        order: list[int],
        step: int,
    ) -> dict:
        """Take the advantages from the critic, then update the critic and the policy."""
        training, trajectories = self.learner.training, _flat(groups)
        before = critic.values(sequences)
        estimates = [
            estimate(trajectory, values, self.id.method, training)
            for trajectory, values in zip(trajectories, before, strict=True)
        ]
        trained = [index in set(order) for index in range(len(sequences))]
        row = store_advantages(trajectories, sequences, estimates, trained)
        if training.advantage_rms is not None:
            factor = scale_advantages([trajectories[i] for i in order], training.advantage_rms)
            for sequence in sequences:
                sequence.advantages *= factor
            row |= {"advantage_factor": factor}
        row |= critic.update(sequences, before, estimates, order)
        warming = self._step_of_run(step) < training.critic.warmup_steps
        return row | self.learner.update(sequences, [] if warming else order)

    def _step_of_run(self, step: int) -> int:
        return (self.id.index - 1) * self.learner.training.steps_per_round + step

    def _set_lr(self, step: int) -> None:
        """Set the learning rate, with a linear warm-up that counts steps across rounds."""
        warmup = max(1, self.learner.training.warmup_steps)
        factor = min(1.0, (self._step_of_run(step) + 1) / warmup)
        set_lr([self.learner.optimiser], factor)

    def _save(self, groups: Sequence[Group], step: int) -> None:
        """On the first rank, save the step's trajectories and the learner's state."""
        if self.learner.ranks.first:
            write_step(_flat(groups), self.id.index, step, self.checkpoints.folder)
            self.checkpoints.save(self.learner, self.rows)


def _flat(groups: Sequence[Group]) -> list[Trajectory]:
    return [trajectory for group in groups for trajectory in group.trajectories]
