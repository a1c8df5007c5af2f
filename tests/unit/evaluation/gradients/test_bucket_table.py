"""The table of buckets, against gradients that are known."""

import numpy as np
import pytest

from hgrpo.evaluation.gradients.bucket_statistics import GroupProducts
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.evaluation.gradients.slopes import weighted_norms
from hgrpo.evaluation.gradients.table import SHOWN, Pass, bucket_table, mix
from hgrpo.learning.gradients.components import COMPONENTS

DEVIATIONS = np.array([3.0, 0.0, 1.0, 2.0, 0.0])
CONFIG = GradientsConfig(groups=5, rollouts=4, buckets=2, kl_coefficient=0.5, entropy_coefficient=2)
SHIFT, SCALE = 0.3, 4.0


@pytest.fixture
def vectors():
    """Sums of gradients, [components, groups, parameters]."""
    return np.random.default_rng(7).normal(size=(len(COMPONENTS), 5, 6))


def measured(vectors, groups):
    part = vectors[:, groups]
    inner = np.einsum("cgp,dhp->cgdh", part, part)
    sizes = np.array([10.0, 20.0, 30.0, 40.0, 50.0])[groups]
    counts = np.arange(1, 6)[groups]
    return Pass(groups, GroupProducts(inner, sizes, part[:, :, 0]), counts, 10 * counts)


def known(vectors):
    """The components that the table shows."""
    task, score, kl, entropy = vectors
    whitened = (task - SHIFT * score) / SCALE
    return dict(zip(SHOWN, (whitened, task, kl, entropy, 0.5 * kl + 2 * entropy), strict=True))


def test_what_is_shown_is_made_of_the_components(vectors):
    mixed = mix(measured(vectors, np.arange(5)).products, SHIFT, SCALE, 0.5, 2.0)
    expected = np.array(list(known(vectors).values()))
    np.testing.assert_allclose(mixed.products, np.einsum("cgp,dhp->cgdh", expected, expected))
    np.testing.assert_allclose(mixed.losses, expected[:, :, 0])


def test_rows_by_hand(vectors):
    passes = {"prefilter": measured(vectors, np.arange(5))}
    table, places = bucket_table(passes, DEVIATIONS, CONFIG, SHIFT, SCALE)
    # Sorted by deviation, groups 1, 4, 2 and 3, 0: the first bucket has one more.
    assert places == {
        "prefilter": {1: "bucket_1", 4: "bucket_1", 2: "bucket_1", 3: "bucket_2", 0: "bucket_2"}
    }
    rows = table.set_index(["bucket", "component"])
    for component, gradient in known(vectors).items():
        row = rows.loc[("bucket_2", component)]
        assert row["norm"] == pytest.approx(np.linalg.norm(gradient[[0, 3]].sum(0) / 50))
        assert row["loss"] == pytest.approx(gradient[[0, 3], 0].sum() / 50)
        assert (row["groups"], row["trajectories"], row["tokens"]) == (2, 5, 50)
        assert (row["deviation"], row["deviation_min"], row["deviation_max"]) == (2.5, 2, 3)
    coefficients = rows.loc["all"]["coefficient"].to_dict()
    assert coefficients == dict(zip(SHOWN, (1, 1, 0.5, 2, 1), strict=True))
    both = known(vectors)
    one, other = both["task"].sum(0), both["regularisers"].sum(0)
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert rows.loc[("all", "task"), "cosine_to_regularisers"] == pytest.approx(cosine)


def test_gradients_that_cancel_have_a_square_below_0(vectors):
    """The norm is 0, so that it and the ratio of signal to noise no longer tell how much."""
    vectors[:, 0], vectors[:, 1] = 1.0, -1.0
    passes = {"prefilter": measured(vectors, np.arange(2))}
    table, _ = bucket_table(passes, DEVIATIONS, CONFIG, SHIFT, SCALE)
    rows = table.assign(method="PPO", seed=11, round=0)
    row = rows.set_index(["bucket", "component"]).loc[("bucket_1", "kl")]
    assert (row["norm"], row["signal_to_noise"]) == (0, -1)
    # Two groups with sums of 6 ones and of 30 tokens: m / (m - 1) * 2 * 6 / 30^2.
    assert row["signal"] == pytest.approx(-2 * 2 * 6 / 30**2)
    squares = weighted_norms(rows).set_index("component")["square"]
    assert squares["kl"] == pytest.approx(0.5**2 * row["signal"]) and np.isfinite(squares).all()


@pytest.mark.parametrize("groups", [[], [2]])
def test_fewer_than_two_kept_groups_leave_the_other_pass(vectors, groups):
    passes = {
        "prefilter": measured(vectors, np.arange(5)),
        "postfilter": measured(vectors, np.array(groups, dtype=int)),
    }
    table, places = bucket_table(passes, DEVIATIONS, CONFIG, SHIFT, SCALE)
    assert set(table["pass"]) == set(places) == {"prefilter"}
