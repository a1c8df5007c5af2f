"""One round of RL: each step collects rollouts, assigns credit and updates the policy."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all, is_order_dependent
from hgrpo.games.base import Task
from hgrpo.games.streams import generator, training_step
from hgrpo.learning.advantages import takes_part
from hgrpo.learning.batch import (
    GroupAdvantages,
    forget_advantages,
    group_advantages,
    scale_advantages,
    training_sequences,
)
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.chosen import (
    Chosen,
    choose,
    flat,
    scale_living,
    spread_of_returns,
    weigh,
    where,
)
from hgrpo.learning.collapse import measure_step
from hgrpo.learning.critic import Critic, estimates, store_advantages
from hgrpo.learning.log_row import advantage_row, rollout_row, spread_row, trained_row
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.optimisers import set_lr
from hgrpo.learning.stops import after_collection, after_evaluations, stop_row
from hgrpo.learning.tasks import further_tasks, tasks_of_step
from hgrpo.learning.update import Learner
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.collector import Collector
from hgrpo.trajectories.store import write_step
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class RoundId:
    """Identifies a round by its method, seed and number `index`, which starts at 1."""

    method: MethodConfig
    seed: int
    index: int


@dataclass
class Round:
    """A round of training; `run` resumes after the last saved step.

    Attributes:
        id: part of the names of the round's random streams.
        panel: the training tasks.
        checkpoints: saves finished steps. Its folder also contains the trajectories.
        validation: greedy success rate on the validation panel after each earlier round, if the
            stopping rules require it.
        second: creates a second assigner, to check that a group's credit does not depend on earlier
            groups. Without `second`, credit is not checked.
        rows: the log so far, one row per step.
    """

    id: RoundId
    panel: Sequence[Task]
    collector: Collector
    assigner: CreditAssigner
    learner: Learner
    checkpoints: Checkpoints
    validation: Sequence[float] = ()
    second: Callable[[], CreditAssigner] | None = None
    rows: list[dict] = field(default_factory=list)

    def run(self, on_step: Callable[[dict], None], on_trajectory: Callable[[], None]) -> list[dict]:
        """Run the remaining steps; return the log rows of all steps, including restored steps.

        If a stopping rule ends the run, this round and all later rounds have no further steps.

        Args:
            on_step: called with each new log row.
            on_trajectory: called each time this process finishes a trajectory.

        Raises:
            TrainingError: training cannot continue. The last finished step is kept.
            UserError: a checkpoint is damaged, or the assigner returned invalid credit.
        """
        self.rows = self.checkpoints.restore(self.learner)
        rule = after_evaluations(self.learner.training.stops, self.validation)
        if rule and not self.learner.stop.over:
            self.learner.stop = self.learner.stop.ended("stopped", rule, (self.id.index, None))
        for step in range(len(self.rows), self.learner.training.steps_per_round):
            if self.learner.stop.over:
                break
            self._step(step, on_trajectory)
            on_step(self.rows[-1])
        return self.rows

    def _step(self, step: int, on_trajectory: Callable[[], None]) -> None:
        began = time.perf_counter()
        training = self.learner.training
        groups, advantages, synced, seconds = self._play(step, on_trajectory)
        ranks = self.learner.ranks
        reported = dict(ranks.broadcast(self.assigner.report() if ranks.first else None))
        self.collector.engine.sleep()
        played = [group.trajectories for group in groups]
        chosen = self.choose(played, advantages)
        self._apply_stops(played, chosen, step)
        if self.learner.stop.over:
            nothing = [np.zeros_like(mask) for mask in chosen.trajectories]
            chosen = replace(chosen, trajectories=nothing)
        measuring = time.perf_counter()
        if collapse := self._measure_collapse(played, step):
            seconds["collapse_s"] = time.perf_counter() - measuring
        diagnostics = self._update(played, advantages, chosen, step)
        elapsed = time.perf_counter() - began
        self.rows.append(
            # Columns of the assigner must not replace columns of the log that have the same name.
            reported
            | {"step": step, "round": self.id.index}
            | rollout_row(played)
            | spread_row(played, training)
            | trained_row(chosen.trajectories)
            | advantage_row(played, advantages)
            | chosen.row
            | stop_row(self.learner.stop, training.stops)
            | collapse
            | diagnostics
            | synced
            | {"lr": self.learner.optimiser.param_groups[0]["lr"]}
            | seconds
            | {"update_s": elapsed - sum(seconds.values()), "elapsed_s": elapsed}
        )
        leaves_out = training.dynamic_sampling is not None or training.filter is not None
        if leaves_out or self.learner.stop.over:
            forget_advantages(flat(played), chosen.flat)
        if ranks.first:
            write_step(flat(played), self.id.index, step, self.checkpoints.folder)
            self.checkpoints.save(self.learner, self.rows)

    def _play(
        self, step: int, on_trajectory: Callable[[], None]
    ) -> tuple[list[Group], list[GroupAdvantages], dict, dict[str, float]]:
        """Play the step's tasks and, with dynamic sampling, further tasks; assign credit.

        Returns the groups, their advantages, log entries about the engine, and times in seconds.
        """
        training, began = self.learner.training, time.perf_counter()
        arguments = self.panel, self.id.seed, self.id.index, step, training
        tasks, further = tasks_of_step(*arguments), further_tasks(*arguments)
        synced = self.load_engine(tasks)
        groups: list[Group] = []
        advantages: list[GroupAdvantages] = []
        seconds = {"collect_s": 0.0, "credit_s": 0.0}
        while tasks:
            batch = self._collect(tasks, step, on_trajectory)
            collected = time.perf_counter()
            groups += batch
            credits = self._credit(batch)
            if step == 0 and len(groups) == len(batch) and self.second and self.learner.ranks.first:
                # Recompute the credit of the last group with nonzero credit. If the result is not
                # the same, the assigner's state depends on earlier groups.
                living = [k for k, rows in enumerate(credits) if any(map(np.any, rows))] or [0]
                again = self.second, batch[living[-1]], credits[living[-1]]
                synced["order_dependent_credit"] = is_order_dependent(*again)
            advantages += [
                group_advantages(group, credit, self.id.method, training)
                for group, credit in zip(batch, credits, strict=True)
            ]
            seconds["collect_s"] += collected - began
            began = time.perf_counter()
            seconds["credit_s"] += began - collected
            # Play one task per missing group, so that no usable group is dropped.
            missing = training.tasks_per_step - sum(not each.dead for each in advantages)
            tasks, further = further[:missing], further[missing:]
        return groups, advantages, synced, seconds

    def load_engine(self, tasks: Sequence[Task]) -> dict[str, float | None]:
        """Load the policy's weights into the engine and check the result; return log entries."""
        engine, policy = self.collector.engine, self.learner.policy
        engine.load_weights(policy)
        return check_sync(engine, policy, tasks[0].task_id)

    def _collect(
        self, tasks: Sequence[Task], step: int, on_trajectory: Callable[[], None]
    ) -> list[Group]:
        """Play one group per task; each rank plays a part of the tasks but receives all groups."""
        ranks, rollouts = self.learner.ranks, self.learner.training.rollouts_per_task
        stream = training_step(self.id.seed, self.id.index, step, self.id.method.stream)
        mine = self.collector.collect(ranks.share(tasks), rollouts, stream, on_trajectory)
        return [Group(group, (*stream, group[0].task.task_id)) for group in ranks.join(mine)]

    def _credit(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Credit of every turn of every group.

        Only the first rank computes the credit, so that calls to a judge are not repeated.
        """
        ranks = self.learner.ranks
        return ranks.broadcast(assign_all(self.assigner, groups) if ranks.first else None)

    def choose(
        self, played: Sequence[Sequence[Trajectory]], advantages: Sequence[GroupAdvantages]
    ) -> Chosen:
        """Select trajectories for the update: exclude dead groups, then apply the filter.

        With a critic, no group counts as dead, because advantages are not relative to the group.
        """
        training, rule = self.learner.training, self.id.method.dead_groups
        penalised = training.penalises_dead_groups(self.learner.kl_coefficient)
        critic = self.learner.critic is not None
        take_part = [critic or takes_part(each.dead, rule, penalised) for each in advantages]
        entropies = None
        if training.filter is not None and training.filter.needs_entropies:
            rows = self.learner.score(training_sequences(flat(played)), entropies=True)
            ends = np.cumsum([len(group) for group in played])[:-1]
            entropies = np.split(np.array([float(row.mean()) for row in rows]), ends)
        return choose(played, take_part, training, entropies)

    def _apply_stops(
        self, played: Sequence[Sequence[Trajectory]], chosen: Chosen, step: int
    ) -> None:
        """Apply the stopping rules to the step. If a rule ends the run, the step has no update."""
        training, won = self.learner.training, [t.success for t in flat(played)]
        self.learner.stop = after_collection(
            self.learner.stop,
            training.stops,
            spread_of_returns(played, training),
            sum(won) / len(won),
            chosen.empty,
            (self.id.index, step),
        )

    def _measure_collapse(
        self, played: Sequence[Sequence[Trajectory]], step: int
    ) -> dict[str, float | None]:
        """Collapse metrics; empty except in the run's first step and in each round's last step.

        Call this method before the update, because the policy that played must score the replies.
        """
        training = self.learner.training
        last = step == training.steps_per_round - 1 or self.learner.stop.over
        first = self.id.index == 1 and step == 0
        if training.collapse is None or not (first or last):
            return {}
        return measure_step(
            flat(played),
            training.collapse.pairs,
            (self.id.seed, self.id.index, step),
            self.learner.policy.conversation,
            self.collector.engine.max_length,
            self.learner.score,
        )

    def _update(
        self,
        played: Sequence[Sequence[Trajectory]],
        advantages: Sequence[GroupAdvantages],
        chosen: Chosen,
        step: int,
    ) -> dict:
        # The warm-up counts steps across rounds.
        warmup = max(1, self.learner.training.warmup_steps)
        set_lr([self.learner.optimiser], min(1.0, (self._step_of_run(step) + 1) / warmup))
        rng = generator("minibatches", self.id.seed, self.id.index, step)
        used = np.flatnonzero(chosen.flat)
        order = used[rng.permutation(len(used))].tolist()
        if self.learner.critic is not None:
            return self._update_both(self.learner.critic, played, chosen, order, step)
        row, rms = {}, self.learner.training.advantage_rms
        if rms is not None:
            row = {"advantage_factor": scale_living(played, advantages, chosen, rms)}
        weigh(played, chosen.weights)
        return row | self.learner.update(training_sequences(flat(played)), order)

    def _update_both(
        self,
        critic: Critic,
        played: Sequence[Sequence[Trajectory]],
        chosen: Chosen,
        order: list[int],
        step: int,
    ) -> dict:
        training, trajectories = self.learner.training, flat(played)
        sequences = training_sequences(trajectories)
        critic.calibrate(np.array([trajectory.env_return for trajectory in trajectories]))
        before = critic.values(sequences)
        made = estimates(critic, trajectories, before, self.id.method, training)
        row = store_advantages(trajectories, sequences, made, chosen.flat)
        if training.advantage_rms is not None:
            used = where(trajectories, chosen.flat)
            row |= {"advantage_factor": scale_advantages(used, training.advantage_rms)}
            for sequence in sequences:
                sequence.advantages = sequence.advantages * row["advantage_factor"]
        weigh(played, chosen.weights, sequences)
        row |= critic.update(sequences, before, made, order)
        warming = self._step_of_run(step) < training.critic.warmup_steps
        return row | self.learner.update(sequences, [] if warming else order)

    def _step_of_run(self, step: int) -> int:
        return (self.id.index - 1) * self.learner.training.steps_per_round + step
