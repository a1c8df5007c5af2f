"""Statistics of a bucket's gradient, against the vectors that their products come from."""

import math

import numpy as np
import pytest

from hgrpo.evaluation.gradients.bucket_statistics import (
    GroupProducts,
    bucket_statistics,
    cosine_to_all,
)
from hgrpo.evaluation.truth.resampling import estimate, resamples


def products(vectors, sizes):
    """Products of vectors [C, G, P]."""
    vectors = np.asarray(vectors, dtype=np.float64)
    # The first entry of a vector stands for its loss.
    inner = np.einsum("cgp,dhp->cgdh", vectors, vectors)
    return GroupProducts(inner, np.asarray(sizes, dtype=np.float64), vectors[:, :, 0])


@pytest.fixture
def drawn():
    rng = np.random.default_rng(3)
    return rng.normal(size=(2, 7, 5)) + 0.5, rng.integers(1, 9, size=7)


def test_two_groups_by_hand():
    # u = (3, 0) and (0, 4) with 1 and 1 tokens: g = (1.5, 2), so the norm is 2.5. The residuals are
    # (1.5, -2) and (-1.5, 2), each of square 6.25; 2 / 1 * 12.5 / 4 = 6.25 is the noise.
    statistics = bucket_statistics(products([[[3, 0], [0, 4]]], [1, 1]))
    assert statistics.norm.tolist() == [[2.5]]
    assert statistics.noise.tolist() == [[6.25]]
    assert statistics.corrected.tolist() == [[0.0]] and statistics.signal_to_noise.tolist() == [
        [0.0]
    ]


def test_they_are_those_of_the_vectors(drawn):
    vectors, sizes = drawn
    statistics = bucket_statistics(products(vectors, sizes))
    gradient = vectors.sum(1) / sizes.sum()
    np.testing.assert_allclose(statistics.norm[0], np.linalg.norm(gradient, axis=1))
    np.testing.assert_allclose(statistics.loss[0], gradient[:, 0])
    residual = vectors - gradient[:, None] * sizes[:, None]
    noise = 7 / 6 * (residual**2).sum((1, 2)) / sizes.sum() ** 2
    np.testing.assert_allclose(statistics.noise[0], noise)
    cosine = gradient[0] @ gradient[1] / math.prod(np.linalg.norm(gradient, axis=1))
    np.testing.assert_allclose(statistics.cosine[0], [[1, cosine], [cosine, 1]])


def test_a_resample_is_the_bucket_with_its_groups_repeated(drawn):
    vectors, sizes = drawn
    counts = np.array([[2, 0, 1, 3, 0, 1, 0], [1, 1, 1, 1, 1, 1, 1]])
    statistics = bucket_statistics(products(vectors, sizes), counts)
    repeated = np.repeat(np.arange(7), counts[0])
    again = bucket_statistics(products(vectors[:, repeated], sizes[repeated]))
    np.testing.assert_allclose(statistics.norm[0], again.norm[0])
    np.testing.assert_allclose(statistics.cosine[0], again.cosine[0])
    np.testing.assert_allclose(statistics.noise[0], again.noise[0])
    np.testing.assert_allclose(statistics.norm[1], bucket_statistics(products(*drawn)).norm[0])


def test_the_correction_removes_what_noise_adds():
    # Groups of a true gradient of norm 1 with noise: the plain norm exceeds it, on average.
    rng = np.random.default_rng(11)
    truth = np.zeros(400)
    truth[0] = 1.0
    plain, square = [], []
    for _ in range(40):
        vectors = truth + rng.normal(size=(1, 30, 400)) * 0.2
        statistics = bucket_statistics(products(vectors, np.ones(30)))
        plain.append(statistics.norm[0, 0] ** 2)
        square.append(statistics.norm[0, 0] ** 2 - statistics.noise[0, 0])
    assert np.mean(plain) > 1.4
    assert abs(np.mean(square) - 1) < 4 * np.std(square) / math.sqrt(40)


@pytest.mark.parametrize("length", [0.0, 1.5])
def test_intervals_of_corrected_norms_cover_the_truth(length):
    # Noise alone has a norm of about 1.1 here.
    rng = np.random.default_rng(5)
    truth = np.zeros(60)
    truth[0] = length
    covered = []
    for _ in range(60):
        vectors = truth + rng.normal(size=(1, 48, 60))
        statistics = bucket_statistics(products(vectors, np.ones(48)), resamples(48, 400))
        value, lower, upper = estimate(statistics.corrected[:, 0])
        whole = bucket_statistics(products(vectors, np.ones(48)))
        assert value == pytest.approx(whole.corrected[0, 0])
        covered.append(lower <= length <= upper)
    assert np.mean(covered) > 0.85


def test_whitened_advantages_are_a_sum_of_components(drawn):
    vectors, sizes = drawn
    mean, deviation = 0.3, 2.0
    mixed = products(vectors, sizes).combined(np.array([[1 / deviation, -mean / deviation]]))
    direct = products([(vectors[0] - mean * vectors[1]) / deviation], sizes)
    np.testing.assert_allclose(mixed.products, direct.products)
    np.testing.assert_allclose(mixed.losses, direct.losses)


def test_weights_of_groups(drawn):
    vectors, sizes = drawn
    weights = np.arange(7) / 3
    weighted = products(vectors, sizes).weighted(weights, np.array([True, False]))
    direct = products([vectors[0] * weights[:, None], vectors[1]], sizes)
    np.testing.assert_allclose(weighted.products, direct.products, atol=1e-12)
    np.testing.assert_allclose(weighted.losses, direct.losses)


def test_a_part_of_the_groups(drawn):
    vectors, sizes = drawn
    chosen = np.array([4, 1, 6])
    part_of = products(vectors, sizes).of(chosen)
    np.testing.assert_allclose(
        part_of.products, products(vectors[:, chosen], sizes[chosen]).products
    )
    part, every = vectors[:, chosen].sum(1), vectors.sum(1)
    expected = (part * every).sum(1) / np.linalg.norm(part, axis=1) / np.linalg.norm(every, axis=1)
    np.testing.assert_allclose(cosine_to_all(products(vectors, sizes), chosen), expected)
