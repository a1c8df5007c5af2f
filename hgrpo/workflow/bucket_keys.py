"""Checks before the plan that the bucket with the results can be asked.

Without credentials, Snakemake would plan all the same, with an error for every file.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hgrpo.errors import UserError

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

# The S3 plugin's documented variables begin so, and its settings hold their values.
_PREFIX = "SNAKEMAKE_STORAGE_S3"


def check_bucket(workflow: "Workflow") -> None:
    """Refuse to plan a study whose results are in an S3 bucket if there are no credentials.

    Raises:
        UserError: they are missing. The message names the variables.
    """
    if workflow.storage_settings.default_storage_provider == "s3":
        tagged = (workflow.storage_provider_settings or {}).get("s3")
        check_keys(tagged.get_settings() if tagged else None, has_own_credentials)


def check_keys(settings: object, found_elsewhere: Callable[[], bool]) -> None:
    """Refuse a bucket without credentials.

    Args:
        settings: those of the S3 plugin, with `access_key` and `secret_key`; None without any.
        found_elsewhere: says whether AWS's own places hold credentials.

    Raises:
        UserError: they are missing. The message names the variables.
    """
    keys = ("access_key", "secret_key")
    missing = [key for key in keys if not getattr(settings, key, None)]
    if not missing or (len(missing) == len(keys) and found_elsewhere()):
        return
    names = " and ".join(f"{_PREFIX}_{key.upper()}" for key in missing)
    raise UserError(f"{names}: not set; the bucket with the results needs them")


def has_own_credentials() -> bool:
    """Whether AWS's library finds credentials: in variables, in ~/.aws, or of the machine."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session().get_credentials() is not None
    except BotoCoreError:
        return False
