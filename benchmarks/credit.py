"""Measure the time of credit assignment, in a training step and on cached rollouts.

A step collects 128 trajectories (groups of 8 on 16 games, as in training), assigns credit to them,
and updates the policy once with the settings of the laptop study. All times are process time on one
thread. For each method, the benchmark reports a share: the median time to assign credit to a batch,
divided by the median time to collect a batch and update on it. For TurnRD, the share includes the
additional time to compute embeddings during the collection. For judges, all answers are in the
cache. For counterfactual credit, the share includes the additional episodes.

The second measurement is the time to compute the credit of every method of the study
`bakeoff_plateau_plus` for a stored round. The round has 10,000 trajectories with embeddings, which
are copies of the batch. If a round is stored without embeddings, the embeddings must be computed
first. The time to compute embeddings is measured on one batch and scaled up to the round.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from laptop import ROOT, Laptop, prepare
from torch.optim import AdamW
from transformers.utils import logging

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, CreditAssigner, Group, assign_all, make_assigner
from hgrpo.credit.settings import CreditSettings
from hgrpo.credit.turnrd.assigner import turn_embeddings
from hgrpo.credit.turnrd.model import build_model, save_model
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.evaluation.shared_rollouts import SharedRollouts, computations, compute
from hgrpo.learning.batch import group_advantages, training_sequences
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype
from hgrpo.rollout.collector import Collector
from hgrpo.study.study import load_study
from hgrpo.trajectories.played_groups import PlayedGroup, read_groups
from hgrpo.trajectories.store import concatenate, sequence_table, turn_table, write_table
from hgrpo.trajectories.trajectory import Trajectory

GAMES, ROLLOUTS, TURNS, REPLY, REPEATS, CACHED = 16, 8, 12, 12, 3, 10_000
PLAYS = "counterfactual"


class _ReadsEmbeddings(CreditSettings):
    reads_embeddings = True


def measure(laptop: Laptop, scratch: Path) -> dict:
    """Return all measurements. Temporary files are written to `scratch`."""
    study = load_study(ROOT / "configs/studies/bakeoff_plateau_plus.yaml")
    playing = load_study(ROOT / "configs/studies/cf_supervision.yaml").methods["Counterfactual"]
    methods = {name: arm for name, arm in study.methods.items() if arm.train}
    training = study.training[study.config.reference]
    policy = laptop.policy()
    plain, pooled = (
        laptop.collector(policy, GAMES * ROLLOUTS, TURNS, REPLY, needs=needs())
        for needs in (CreditSettings, _ReadsEmbeddings)
    )
    conversation = Conversation(policy.tokenizer)
    context = Context(laptop.env.name, policy, conversation, pooled, scratch)
    credit = {name: arm.credit for name, arm in methods.items()} | {PLAYS: playing.credit}
    fitted = _fitted(credit, policy, scratch)
    assigners = {
        name: make_assigner(config, replace(context, fitted=fitted.get(name)))
        for name, config in credit.items()
    }
    learner = _learner(laptop, policy, training)
    steps = _steps(laptop, plain, pooled, learner, assigners, methods)
    step = median(a + b for a, b in zip(steps.collect, steps.update, strict=True))
    pooling = max(0.0, median(steps.pooled) - median(steps.collect))
    shares = {
        name: (median(seconds) + (pooling if name in fitted else 0.0)) / step
        for name, seconds in steps.credit.items()
    }
    flat = [trajectory for group in steps.groups for trajectory in group.trajectories]
    embedding, _ = _timed(_embed, policy, steps.groups)
    cached, trajectories = _cached(flat, laptop, methods, fitted, context, scratch)
    return {
        "step_s": step,
        "collect_s": median(steps.collect),
        "update_s": median(steps.update),
        "pooling_s": pooling,
        "shares": shares,
        "by_kind": _worst(shares, {name: config.kind for name, config in credit.items()}),
        "cached_trajectories": trajectories,
        "cached_s": cached,
        "embedding_s": embedding * trajectories / len(flat),
    }


@dataclass
class Steps:
    """Durations of the parts of a few training steps, in seconds.

    `collect` and `pooled` are the durations of collecting rollouts without and with embeddings.
    `credit` maps each method to its durations. `groups` are the trajectories of the last step.
    """

    collect: list[float] = field(default_factory=list)
    pooled: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    credit: dict[str, list[float]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)


def _steps(
    laptop: Laptop,
    plain: Collector,
    pooled: Collector,
    learner: Learner,
    assigners: Mapping[str, CreditAssigner],
    methods: Mapping[str, MethodConfig],
) -> Steps:
    steps = Steps(credit={name: [] for name in assigners})
    steps.groups = _collect(laptop, pooled)
    for assigner in assigners.values():
        assign_all(assigner, steps.groups)  # triggers lazy loading and compilation
    for _ in range(REPEATS):
        for spent, collector in ((steps.collect, plain), (steps.pooled, pooled)):
            collector.engine.load_weights(learner.policy)
            seconds, steps.groups = _timed(_collect, laptop, collector)
            spent.append(seconds)
        # The trajectories are new, so fill the judge's cache before timing.
        assign_all(assigners["LLMJudge"], steps.groups)
        for name, assigner in assigners.items():
            seconds, credit = _timed(assign_all, assigner, steps.groups)
            steps.credit[name].append(seconds)
            if name == "GiGPO":
                for group, rows in zip(steps.groups, credit, strict=True):
                    group_advantages(group, rows, methods[name], learner.training)
        seconds, _ = _timed(_update, learner, steps.groups)
        steps.update.append(seconds)
    return steps


def _timed(work: Callable, *arguments: object) -> tuple[float, Any]:
    began = time.process_time()
    result = work(*arguments)
    return time.process_time() - began, result


def _fitted(credit: Mapping, policy: Policy, scratch: Path) -> dict[str, Path]:
    """Save a model with random weights for each TurnRD method; return the folders.

    The models have the size of fitted models, so reading them takes the same time.
    """
    folders = {}
    width = policy.causal_lm.config.hidden_size
    for name, config in credit.items():
        if not isinstance(config.declared, Settings):
            continue
        settings = config.declared
        folders[name] = scratch / name
        folders[name].mkdir()
        model = build_model(settings.model, width, 0)
        save_model(model, settings.model, width, {}, folders[name])
    return folders


def _learner(laptop: Laptop, policy: Policy, training: TrainingConfig) -> Learner:
    policy.load_reference(laptop.folder / "sft" / "adapter")
    optimiser = AdamW([parameter for _, parameter in policy.trainable], lr=training.lr)
    dtype = autocast_dtype(laptop.model, policy.device)
    return Learner(policy, optimiser, training.kl.init, training, dtype)


def _collect(laptop: Laptop, collector: Collector) -> list[Group]:
    played = collector.collect(laptop.tasks[:GAMES], ROLLOUTS, ("bench",))
    return [Group(group, ("bench", group[0].task.task_id)) for group in played]


def _update(learner: Learner, groups: Sequence[Group]) -> None:
    flat = [trajectory for group in groups for trajectory in group.trajectories]
    learner.update(training_sequences(flat), list(range(len(flat))))


def _embed(policy: Policy, groups: Sequence[Group]) -> None:
    for group in groups:
        turn_embeddings(policy, group.trajectories)


def _worst(shares: Mapping[str, float], kinds: Mapping[str, str]) -> dict[str, float]:
    """Return the largest of the methods' shares for each kind of credit assigner."""
    worst: dict[str, float] = {}
    for name, share in shares.items():
        worst[kinds[name]] = max(share, worst.get(kinds[name], 0.0))
    return worst


def _cached(
    flat: Sequence[Trajectory],
    laptop: Laptop,
    methods: Mapping,
    fitted: Mapping[str, Path],
    context: Context,
    scratch: Path,
) -> tuple[float, int]:
    """Store a round of `CACHED` trajectories and compute its credit with every method.

    Returns the time in seconds and the number of trajectories.
    """
    for name, table in (("turns", turn_table), ("sequences", sequence_table)):
        parts = []
        for step, first in enumerate(range(0, CACHED, len(flat))):
            parts.append(scratch / f"{name}_{step}.parquet")
            write_table(table(flat[: CACHED - first], 1, step), parts[-1])
        concatenate(parts, scratch / f"{name}.parquet")
    credit = {name: arm.credit for name, arm in methods.items()}

    def work() -> list[PlayedGroup]:
        rollouts = SharedRollouts(read_groups(scratch, laptop.tasks), 0, 0)
        for computed in computations(credit, fitted):
            compute(computed, rollouts.named, rollouts, context)
            if computed.values is None:
                raise RuntimeError(f"{computed.methods[0]}: {computed.note}")
        return rollouts.stored

    seconds, cached = _timed(work)
    return seconds, sum(len(group.trajectories) for group in cached)


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(prepare(Path(sys.argv[1])), Path(folder))))
