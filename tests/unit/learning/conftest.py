import pytest
from tiny_policy import make_policy
from toy_round import imitate_random_doors


@pytest.fixture(scope="session")
def imitator(tmp_path_factory):
    """Config, and folders of the base and of a policy that opens doors at random."""
    folder = tmp_path_factory.mktemp("toy")
    policy = make_policy(folder / "base")
    imitate_random_doors(policy)
    policy.save_adapter(folder / "sft")
    return policy.config, folder / "base", folder / "sft"
