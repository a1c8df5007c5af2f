"""Which job of a stage runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One job of a stage.

    Attributes:
        method: name of the arm; "" if the job belongs to all arms.
        seed: the run's seed; in stages before the runs, the seed of the random draws.
        round: number of the round, from 1; round 0 is the SFT policy.
        code: hash of the code that the job runs, stored with its results and checkpoints.
    """

    method: str = ""
    seed: int = 0
    round: int = 0
    code: str = ""
