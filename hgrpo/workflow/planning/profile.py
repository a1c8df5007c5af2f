"""What a plan reads from a profile: how many jobs run at a time, and what an hour costs."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hgrpo.config.read import read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.study.resources import StageResources

PRICES = "prices.yaml"


class Prices(Strict):
    """What a cluster charges for cores, GPUs and disk."""

    core_hour: float = Field(ge=0, allow_inf_nan=False, description="of one core")
    gpu_hour: float = Field(ge=0, allow_inf_nan=False, description="of one GPU")
    disk_gb_month: float = Field(0, ge=0, allow_inf_nan=False, description="of 10^9 bytes")
    currency: str = Field("dollars", min_length=1, max_length=9)
    example: bool = Field(False, description="made-up prices; a plan notes it")

    def of_job(self, seconds: float, needs: StageResources) -> float:
        """What a job of `seconds` costs, in `currency`."""
        return seconds / 3600 * (needs.threads * self.core_hour + needs.gpu * self.gpu_hour)


@dataclass(frozen=True)
class Profile:
    """The part of a profile that a plan needs.

    Attributes:
        path: the profile's folder.
        cores: cores of this machine that run jobs; None on a cluster.
        jobs: largest number of jobs at a time on the cluster; None if jobs run on this machine, or
            if there is no limit.
        prices: the cluster's prices; None if the profile has none.
        in_bucket: whether results are in a bucket, so that jobs share no folder.
        executor: name of Snakemake's executor.
    """

    path: Path
    cores: int | None
    jobs: int | None = None
    prices: Prices | None = None
    in_bucket: bool = False
    executor: str = "local"


def read_profile(path: Path, cores: int | None = None) -> Profile:
    """Read a profile's folder.

    Args:
        path: the profile's folder, such as profiles/slurm.
        cores: overrides the profile's number of cores.

    Raises:
        UserError: there is no such profile, or its config.yaml or its prices are invalid.
    """
    config, file = read_yaml(path / "config.yaml"), path / PRICES
    prices = validate(Prices, read_yaml(file), str(file)) if file.is_file() else None
    # A number may also be `all` or `unlimited`.
    cores_here, jobs = (
        int(value) if str(value := config.get(key)).isdigit() else None for key in ("cores", "jobs")
    )
    if (executor := config.get("executor", "local")) == "local":
        return Profile(path, cores or cores_here or os.cpu_count(), prices=prices)
    in_bucket = config.get("default-storage-provider") is not None
    return Profile(path, None, jobs, prices, in_bucket, executor)
