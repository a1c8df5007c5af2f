import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.games.streams import generator, key, uniform


def test_names_and_types_tell_streams_apart():
    assert len({key("a", 1), key("a", "1"), key("a", 1.0), key("a1"), key(1, "a")}) == 5


def test_the_first_number_of_a_known_stream():
    # SplitMix64 seeded with 0 gives 0xE220A8397B1DCDAF first (the published test vector).
    value = uniform(np.array([0], dtype=np.uint64), np.array([0]))[0]
    assert value == (0xE220A8397B1DCDAF >> 11) * 2.0**-53


@given(st.integers(0, 2**63), st.integers(0, 10_000))
def test_an_element_does_not_depend_on_its_company(stream, position):
    alone = uniform(np.array([stream], dtype=np.uint64), np.array([position]))
    beside = uniform(np.array([7, stream], dtype=np.uint64), np.array([3, position]))
    assert alone[0] == beside[1]
    assert 0.0 <= alone[0] < 1.0


def test_numbers_are_spread_evenly():
    keys = np.array([key("spread", i) for i in range(200)], dtype=np.uint64)
    draws = np.concatenate([uniform(keys, np.full(200, c)) for c in range(50)])
    counts, _ = np.histogram(draws, bins=20, range=(0, 1))
    assert ((counts - 500) ** 2 / 500).sum() < 43.8  # chi-square, 19 degrees, p = 0.001


def test_generators_repeat():
    assert generator("x", 3).integers(1 << 30) == generator("x", 3).integers(1 << 30)
