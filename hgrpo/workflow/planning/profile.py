"""What a plan reads from a profile: how many jobs run at a time, and what an hour costs."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hgrpo.config.read import did_you_mean, read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.study.resources import StageResources

PRICES = "prices.yaml"


class Prices(Strict):
    """What a cluster charges for cores, GPUs and disk."""

    core_hour: float = Field(ge=0, allow_inf_nan=False, description="of one core")
    gpu_hour: float = Field(ge=0, allow_inf_nan=False, description="of one GPU")
    disk_gb_month: float = Field(0, ge=0, allow_inf_nan=False, description="of 10^9 bytes")
    currency: str = Field("dollars", min_length=1, max_length=9)
    example: bool = Field(False, description="the prices are made up, and a plan says so")

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
    if not (path / "config.yaml").is_file():
        known = {each.parent.name for each in path.parent.glob("*/config.yaml")}
        raise UserError(f"{path}: no such profile{did_you_mean(path.name, known)}")
    config = read_yaml(path / "config.yaml")
    prices = read_prices(path / PRICES)
    if (executor := config.get("executor", "local")) == "local":
        return Profile(path, cores or _number(config.get("cores")) or os.cpu_count(), None, prices)
    in_bucket = config.get("default-storage-provider") is not None
    return Profile(path, None, _number(config.get("jobs")), prices, in_bucket, executor)


def read_prices(path: Path) -> Prices | None:
    """The prices in a file; None if it does not exist.

    Raises:
        UserError: the prices are invalid. The message names file and key.
    """
    return validate(Prices, read_yaml(path), str(path)) if path.is_file() else None


def _number(value: object) -> int | None:
    """A number from a profile; None if it is `all`, `unlimited` or absent."""
    return int(value) if str(value).isdigit() else None
