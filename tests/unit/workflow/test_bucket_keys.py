"""Before a plan whose results are in a bucket: its credentials are there."""

from types import SimpleNamespace

import pytest

from hgrpo.errors import UserError
from hgrpo.workflow.preflight import check_bucket, check_keys

BOTH = SimpleNamespace(access_key="a-key", secret_key="a-secret")
NONE = SimpleNamespace(access_key=None, secret_key=None)
HALF = SimpleNamespace(access_key="a-key", secret_key="")


@pytest.mark.parametrize(("settings", "elsewhere"), [(BOTH, False), (NONE, True), (None, True)])
def test_keys_are_enough_and_so_are_those_of_aws(settings, elsewhere):
    check_keys(settings, lambda: elsewhere)


@pytest.mark.parametrize(
    ("settings", "elsewhere", "said"),
    [
        (NONE, False, "SNAKEMAKE_STORAGE_S3_ACCESS_KEY and SNAKEMAKE_STORAGE_S3_SECRET_KEY: not"),
        (None, False, "SNAKEMAKE_STORAGE_S3_ACCESS_KEY and SNAKEMAKE_STORAGE_S3_SECRET_KEY: not"),
        (HALF, True, "SNAKEMAKE_STORAGE_S3_SECRET_KEY: not set; the bucket with the results needs"),
    ],
)
def test_what_is_missing_is_named(settings, elsewhere, said):
    with pytest.raises(UserError) as refused:
        check_keys(settings, lambda: elsewhere)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("provider", [None, "fs", "gcs"])
def test_other_places_are_not_checked(provider):
    settings = SimpleNamespace(default_storage_provider=provider)
    check_bucket(SimpleNamespace(storage_settings=settings))
