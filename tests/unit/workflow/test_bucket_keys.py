"""Before a plan whose results are in a bucket: its credentials are there."""

from types import SimpleNamespace

import pytest

from hgrpo.errors import UserError
from hgrpo.workflow.preflight import check_bucket

BOTH = SimpleNamespace(access_key="a-key", secret_key="a-secret")
HALF = SimpleNamespace(access_key="a-key", secret_key="")


@pytest.mark.parametrize(
    ("provider", "settings", "from_aws", "refused"),
    [
        ("s3", BOTH, None, False),
        ("s3", None, "credentials", False),
        ("s3", None, None, True),
        ("s3", HALF, "credentials", True),
        ("gcs", None, None, False),
        (None, None, None, False),
    ],
)
def test_keys_of_the_plugin_or_of_aws_are_enough(
    monkeypatch, provider, settings, from_aws, refused
):
    session = SimpleNamespace(Session=lambda: SimpleNamespace(get_credentials=lambda: from_aws))
    monkeypatch.setitem(__import__("sys").modules, "boto3", session)
    workflow = SimpleNamespace(
        storage_settings=SimpleNamespace(default_storage_provider=provider),
        storage_provider_settings={"s3": SimpleNamespace(get_settings=lambda: settings)},
    )
    if not refused:
        check_bucket(workflow)
        return
    with pytest.raises(UserError, match=r"^SNAKEMAKE_STORAGE_S3_ACCESS_KEY and .*: not set, "):
        check_bucket(workflow)
