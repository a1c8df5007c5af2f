"""The decoder's cache: how far it reaches and what memory it takes. What it computes:
test_rollout.py, against the trainer."""

import re
from pathlib import Path

import pytest
from tiny_policy import make_policy

from hgrpo.errors import UserError
from hgrpo.rollout.decoder import Decoder

STATUS = Path("/proc/self/status")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


def test_a_position_beyond_the_cache_is_refused(policy):
    decoder = Decoder(policy.architecture, 1, 4, policy.device)
    decoder.load(policy.merged_weights())
    decoder.forward([0], [[5, 6, 7, 8]], [0])
    with pytest.raises(RuntimeError, match="position 5 is beyond the 4"):
        decoder.forward([0], [[9]], [4])


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from Linux's /proc")
def test_room_that_no_conversation_reaches_takes_no_memory(policy):
    before = resident()
    # 1.1 GB, were it all touched.
    decoder = Decoder(policy.architecture, 256, 16_384, policy.device)
    decoder.load(policy.merged_weights())
    decoder.forward([0, 1], [[5, 6, 7], [5, 6]], [0, 0])
    decoder.copy_prefix(0, [2, 3], 3)
    assert resident() - before < 100e6


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from Linux's /proc")
def test_a_short_conversation_in_every_row_takes_little(policy):
    before = resident()
    # 280 MB, were all of it touched, as huge pages would.
    decoder = Decoder(policy.architecture, 64, 16_384, policy.device)
    decoder.load(policy.merged_weights())
    decoder.forward(list(range(64)), [[5, 6, 7]] * 64, [0] * 64)
    assert resident() - before < 50e6


def test_a_cache_beyond_all_memory_is_refused_with_what_to_lower(policy):
    with pytest.raises(UserError, match="100000000 conversations of 16384 tokens .* in_flight"):
        Decoder(policy.architecture, 10**8, 16_384, policy.device)


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text())[1]) * 1000
