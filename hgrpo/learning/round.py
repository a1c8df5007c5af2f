"""One round of reinforcement learning: [collect -> credit -> update] for a number of steps."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all
from hgrpo.envs.base import Task
from hgrpo.learning.advantages import takes_part
from hgrpo.learning.batch import GroupAdvantages, group_advantages, training_sequences
from hgrpo.learning.checkpoint import Checkpoints
from hgrpo.learning.optimisers import set_lr
from hgrpo.learning.schedule import tasks_of_step
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import RolloutEngine
from hgrpo.streams import generator, training_step
from hgrpo.study.method import MethodConfig
from hgrpo.trajectories.records import sequence_table, turn_table
from hgrpo.trajectories.trajectory import Trajectory


@dataclass
class Round:
    """Everything one round needs; `run` plays it, resuming after the last finished step."""

    seed: int
    index: int
    panel: Sequence[Task]
    method: MethodConfig
    training: TrainingConfig
    learner: Learner
    engine: RolloutEngine
    collector: Collector
    assigner: CreditAssigner
    checkpoints: Checkpoints
    rows: list[dict] = field(default_factory=list)

    def run(self, on_step: Callable[[dict], None], on_trajectory: Callable[[], None]) -> list[dict]:
        """Play the steps that are left and return the log rows of all of them."""
        self.rows = self.checkpoints.restore(self.learner)
        for step in range(len(self.rows), self.training.steps_per_round):
            self._step(step, on_trajectory)
            on_step(self.rows[-1])
        return self.rows

    def _step(self, step: int, on_trajectory: Callable[[], None]) -> None:
        began = time.perf_counter()
        training = self.training
        tasks = tasks_of_step(
            self.panel,
            self.seed,
            self.index,
            step,
            training.steps_per_round,
            training.tasks_per_step,
        )
        self.engine.load_weights(self.learner.policy)
        synced = check_sync(self.engine, self.learner.policy, tasks[0].task_id)
        stream = training_step(self.seed, self.index, step, self.method.stream)
        groups = self._collect(tasks, stream, on_trajectory)
        collected = time.perf_counter()
        named = [Group(group, (*stream, group[0].task.task_id)) for group in groups]
        credits, said_of_credit = self._credit(named)
        advantages = [
            group_advantages(group, credit, self.method, training)
            for group, credit in zip(named, credits, strict=True)
        ]
        flat = [trajectory for group in groups for trajectory in group]
        rule, penalised = self.method.dead_groups, self.learner.kl.coefficient > 0
        parts = [takes_part(advantage.dead, rule, penalised) for advantage in advantages]
        alive = np.flatnonzero(np.repeat(parts, [len(group) for group in groups]))
        credited = time.perf_counter()
        global_step = (self.index - 1) * training.steps_per_round + step
        factor = min(1.0, (global_step + 1) / max(1, training.warmup_steps))
        set_lr([self.learner.optimiser], factor)
        rng = generator("minibatches", self.seed, self.index, step)
        order = alive[rng.permutation(len(alive))]
        self.engine.sleep()
        diagnostics = self.learner.update(training_sequences(flat), order.tolist())
        ended = time.perf_counter()
        self.rows.append(
            {"step": step, "round": self.index}
            | _rollout_row(groups)
            | _advantage_row(groups, advantages)
            | said_of_credit
            | diagnostics
            | synced
            | {
                "lr": self.learner.optimiser.param_groups[0]["lr"],
                "collect_s": collected - began,
                "credit_s": credited - collected,
                "update_s": ended - credited,
                "elapsed_s": ended - began,
            }
        )
        if self.learner.ranks.first:
            self.checkpoints.save(
                self.learner,
                self.rows,
                {
                    "turns": turn_table(flat, self.index, step),
                    "sequences": sequence_table(flat, self.index, step),
                },
            )

    def _collect(
        self, tasks: Sequence[Task], stream: Sequence[object], on_trajectory: Callable[[], None]
    ) -> list[list[Trajectory]]:
        """A group of each task; every rank plays a part of them, and all get all."""
        ranks, rollouts = self.learner.ranks, self.training.rollouts_per_task
        mine = self.collector.collect(ranks.share(tasks), rollouts, stream, on_trajectory)
        return ranks.join(mine)

    def _credit(self, groups: Sequence[Group]) -> tuple[list[list[np.ndarray]], dict[str, float]]:
        """Credit of every turn of every group, and what the assigner reports of it.

        The first rank asks for all: a judge is paid once, and remembers what it was asked.
        """
        ranks, found = self.learner.ranks, None
        if ranks.first:
            credits = assign_all(self.assigner, groups)
            found = credits, self.assigner.report()
        return ranks.broadcast(found)


def _rollout_row(groups: Sequence[Sequence[Trajectory]]) -> dict:
    flat = [trajectory for group in groups for trajectory in group]
    returns = np.array([trajectory.env_return for trajectory in flat])
    turns = sum(len(trajectory.turns) for trajectory in flat)
    return {
        "mean_reward": float(returns.mean()),
        "std_reward": float(returns.std()),
        "success_rate": sum(t.success for t in flat) / len(flat),
        "n_turns": turns,
        "mean_turns": turns / len(flat),
        "completed": sum(not t.truncated for t in flat),
        "truncated": sum(t.truncated for t in flat),
        "context_overflow": sum(t.context_overflow for t in flat),
        "n_trajectories": len(flat),
        "n_groups": len(groups),
        "n_action_tokens": sum(t.action_tokens for t in flat),
        "n_forward_tokens": sum(len(t.token_ids) for t in flat),
        "inadmissible_share": sum(t.inadmissible for t in flat) / turns,
        "inadmissible": sum(t.inadmissible for t in flat),
        "overlong": sum(t.overlong for t in flat),
        "empty": sum(t.empty for t in flat),
    }


def _advantage_row(
    groups: Sequence[Sequence[Trajectory]], advantages: Sequence[GroupAdvantages]
) -> dict:
    per_token = np.concatenate(
        [
            np.full(turn.span[1] - turn.span[0], turn.advantage)
            for group in groups
            for trajectory in group
            for turn in trajectory.turns
        ]
    )
    per_turn = np.concatenate([row for group in advantages for row in group.turns])
    per_trajectory = np.concatenate([group.trajectory for group in advantages])
    return {
        "dead_groups": sum(group.dead for group in advantages),
        "mean_abs_traj_adv": float(np.abs(per_trajectory).mean()),
        "mean_abs_turn_adv": float(np.abs(per_turn).mean()),
        "mean_abs_token_adv": float(np.abs(per_token).mean()),
    }
