"""Refuse to measure a policy as that of another arm, seed or round."""

import json
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages import rl_round
from hgrpo.stages.job import Job


def check_measured(policy: Path, sft: Path, method: str, job: Job) -> None:
    """Check that a policy is the one after the job's round, of its arm and seed.

    The summary beside a trained policy says whose it is. Round 0 is the SFT policy, which belongs
    to all arms and seeds; it has the weights of `sft`.

    Args:
        policy: the adapter to measure.
        sft: the SFT adapter.
        method: name of the arm.
        job: its seed and round.

    Raises:
        UserError: it is another policy, or nothing says which one it is.
    """
    if job.round < 0:
        raise UserError(f"--round: {job.round}; 0 is the SFT policy")
    summary = policy.parent / rl_round.OUTPUTS["summary"]
    if not summary.is_file():
        # A copy of the SFT adapter is known by its weights; a trained one needs its summary.
        if job.round or not _equal(policy, sft):
            raise UserError(
                f"{summary}: no such file; it says of which arm, seed and round {policy} is"
            )
        return
    whose = _read(summary)
    # The summary of supervised fine-tuning names no round.
    after = whose.get("round", 0)
    if after != job.round:
        raise UserError(f"--round: {job.round}, but {policy} is the policy after round {after}")
    if not job.round:
        if not _equal(policy, sft):
            raise UserError(
                f"--policy: {policy} has other weights than the SFT policy, which --sft {sft} names"
            )
        return
    for option, key, expected in (
        ("--config: method", "method", method),
        ("--seed", "seed", job.seed),
    ):
        if whose.get(key) != expected:
            raise UserError(f"{option}: {expected}, but {policy} is of {key} {whose.get(key)}")


def _read(summary: Path) -> dict:
    try:
        content = json.loads(summary.read_bytes())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{summary}: not the summary of a stage")
    return content


def _equal(policy: Path, sft: Path) -> bool:
    from hgrpo.policy.compatible import weights_digest

    return weights_digest(policy) == weights_digest(sft)
