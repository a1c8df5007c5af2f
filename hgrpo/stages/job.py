"""Which job of a stage runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One job of a stage.

    Attributes:
        method: name of the arm; "" where the job belongs to all arms.
        seed: of the run, or of the environment's draws before there are runs.
        round: from 1; round 0 is the SFT policy.
        code: hash of the code that the job runs, for its records and its checkpoints.
    """

    method: str = ""
    seed: int = 0
    round: int = 0
    code: str = ""
