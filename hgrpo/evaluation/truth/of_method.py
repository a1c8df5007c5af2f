"""The credit and the advantages that a method gives to published rollouts."""

from pathlib import Path

import numpy as np

from hgrpo.config.read import read_yaml, validate
from hgrpo.credit.base import Context
from hgrpo.envs.base import Task
from hgrpo.errors import UserError
from hgrpo.evaluation.shared_rollouts import SharedRollouts, compute, computations
from hgrpo.evaluation.truth.update import update_advantages
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.trajectories.played_groups import read_groups
from hgrpo.trajectories.store import SEQUENCES_FILE, read_sequences


def credited(method: MethodConfig, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Credit and advantage of the N turns of the rollouts in `folder`, float64 [N] each.

    Raises:
        UserError: the method needs more than the rollouts, or a file is missing or damaged.
    """
    names = ["task_id", "content_hash", "task_type"]
    rows = read_sequences(folder / SEQUENCES_FILE, names).to_pylist()
    stored = read_groups(folder, [Task(path="", **row) for row in rows])
    rollouts = SharedRollouts(stored, read_yaml(folder / "summary.json").get("seed", 0), 0)
    if lacking := _lacking(method, rollouts):
        raise UserError(
            f"{method.name}: its credit comes from {lacking}, and {folder} holds turns alone; "
            "`snakemake credit_agreement` compares methods within a study"
        )
    (computed,) = computations({method.name: method.credit}, {})
    compute(computed, rollouts.named, rollouts, Context())
    training = validate(TrainingConfig, method.training, f"{method.name}: training")
    update = ArmUpdate(method=method, training=training)
    return computed.values, update_advantages(computed.values, rollouts.named, update)


def _lacking(method: MethodConfig, rollouts: SharedRollouts) -> str:
    """Where credit comes from, if the rollouts do not suffice; else ""."""
    declared = method.credit.declared
    states = any(turn.state for played in rollouts.trajectories for turn in played.turns)
    if not method.train or method.uses_critic:
        return "no assigner" if not method.train else f"a critic ({method.advantage})"
    if declared.plays or declared.needs_policy or declared.reads_embeddings:
        return "the policy, its hidden states or further play"
    if declared.reads_situations and not states:
        return "fingerprints of states"
    return "the game" if declared.uses else ""
