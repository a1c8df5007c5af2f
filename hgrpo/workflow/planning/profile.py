"""Read the parts of a Snakemake profile required for planning: parallel jobs and prices."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hgrpo.config.read import read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.study.resources import StageResources

PRICES = "prices.yaml"


class Prices(Strict):
    """A cluster's prices for cores, GPUs and disk."""

    core_hour: float = Field(ge=0, allow_inf_nan=False, description="price of a core-hour")
    gpu_hour: float = Field(ge=0, allow_inf_nan=False, description="price of a GPU-hour")
    disk_gb_month: float = Field(
        0, ge=0, allow_inf_nan=False, description="price of storing 10^9 bytes for a month"
    )
    currency: str = Field("dollars", min_length=1, max_length=9)
    example: bool = Field(False, description="whether these are example prices; plans note this")

    def of_job(self, seconds: float, needs: StageResources) -> float:
        """Cost of a job that takes `seconds`, in units of `currency`."""
        return seconds / 3600 * (needs.threads * self.core_hour + needs.gpu * self.gpu_hour)


@dataclass(frozen=True)
class Profile:
    """The settings of a profile that affect a plan.

    Attributes:
        path: the profile's folder.
        cores: number of local cores available to jobs; None on a cluster.
        jobs: maximum number of parallel jobs on the cluster; None locally or without a limit.
        prices: content of prices.yaml; None if the file does not exist.
        in_bucket: whether results are in a bucket, so that jobs share no file system.
        executor: name of Snakemake's executor.
    """

    path: Path
    cores: int | None
    jobs: int | None = None
    prices: Prices | None = None
    in_bucket: bool = False
    executor: str = "local"


def read_profile(path: Path, cores: int | None = None) -> Profile:
    """Read a profile's folder, such as profiles/slurm; `cores` overrides its number of cores.

    Raises:
        UserError: config.yaml is missing, or config.yaml or prices.yaml is invalid.
    """
    config, file = read_yaml(path / "config.yaml"), path / PRICES
    prices = validate(Prices, read_yaml(file), str(file)) if file.is_file() else None
    # The value may also be `all` or `unlimited`.
    cores_here, jobs = (
        int(value) if str(value := config.get(key)).isdigit() else None for key in ("cores", "jobs")
    )
    if (executor := config.get("executor", "local")) == "local":
        return Profile(path, cores or cores_here or os.cpu_count(), prices=prices)
    in_bucket = config.get("default-storage-provider") is not None
    return Profile(path, None, jobs, prices, in_bucket, executor)
