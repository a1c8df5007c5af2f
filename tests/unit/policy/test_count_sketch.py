"""Count sketches: linear, the same every time, and true to inner products on average."""

import torch

from hgrpo.policy.score_sketch import CountSketch


def test_sketches_are_linear_and_equal_for_equal_names():
    one, other = torch.randn(2, 500, generator=torch.manual_seed(1))
    project = CountSketch(500, 64, "cpu", "a")
    torch.testing.assert_close(project(one + 2 * other), project(one) + 2 * project(other))
    assert torch.equal(CountSketch(500, 64, "cpu", "a")(one), project(one))
    assert not torch.equal(CountSketch(500, 64, "cpu", "b")(one), project(one))


def test_products_have_the_right_mean_and_spread():
    one, other = torch.randn(2, 500, generator=torch.manual_seed(1))
    other = other + one
    truth, size = float(one @ other), 256
    products = torch.tensor(
        [
            float(project(one) @ project(other))
            for project in (CountSketch(500, size, "cpu", f"draw {i}") for i in range(400))
        ]
    )
    scale = float(one.norm() * other.norm())
    bound = scale * (2 / size) ** 0.5
    assert abs(float(products.mean()) - truth) < 4 * bound / 20  # 20 = sqrt(400)
    assert 0.3 * bound < float(products.std()) < bound
