"""The task's constants, metrics of sets, and exact expectations against listing and sampling."""

from itertools import combinations, product

import pytest
import torch

from hgrpo.formulas.set_score import best_scalar, exact_set_score
from hgrpo.sandbox.vpo.evaluate import Examiner
from hgrpo.sandbox.vpo.pareto import GOLD, ParetoFront
from hgrpo.sandbox.vpo.policy import SetPolicy
from hgrpo.sandbox.vpo.set_metrics import (
    coverage,
    hypervolume,
    on_front,
    subset_chances,
    subset_vectors,
    worst_regret,
)

TASK = ParetoFront(8)
BASE = TASK.vectors[0]


def examiner(slots: int = 3, **more):
    policy = SetPolicy(8, slots, 7, 8)
    return Examiner(TASK, policy, (0, 1), **more), policy


def test_prompts_roll_and_swap_the_table():
    assert torch.equal(TASK.vectors[2], BASE.roll(2, 0))
    assert torch.equal(TASK.vectors[1], BASE.roll(1, 0).flip(1))
    assert torch.equal(TASK.vectors[7], BASE.flip(1))
    assert on_front(BASE).tolist() == [True] * 5 + [False] * 2


def best(size: int) -> list[tuple[float, list]]:
    """All sets of `size` answers, the most worthy first."""
    sets = [list(chosen) for chosen in combinations(range(7), size)]
    worth = exact_set_score(BASE[torch.tensor(sets)]).tolist()
    return sorted(zip(worth, sets, strict=True), reverse=True)


def test_what_the_best_sets_are_worth():
    assert (BASE @ GOLD).max().item() == pytest.approx(0.6)
    assert best(1)[0][0] == pytest.approx(0.6)
    assert best(2)[0] == (pytest.approx(0.75), [0, 4])
    assert best(3)[0] == (pytest.approx(0.76), [0, 2, 4])
    assert best(3)[1][0] == pytest.approx(0.7539, abs=5e-5)
    assert best(7)[0][0] == pytest.approx(0.7604, abs=5e-5)


def test_a_uniform_policy_has_the_known_columns():
    watched, policy = examiner()
    columns = watched.examine(torch.zeros(2, policy.init((0,)).shape[1]), 0)
    expected = {"mean_scalar_reward": 0.4286, "best_at_3": 0.5528, "pool_diversity_l1": 0.8122}
    for name, value in expected.items():
        assert columns[name].tolist() == pytest.approx([value] * 2, abs=5e-5)
    # Every slot covers an answer of the front in five of seven cases.
    assert columns["coverage_at_1"][0].item() == pytest.approx(1 / 7)
    assert columns["across_diversity_l1"][0].item() == pytest.approx(0.8122, abs=5e-5)


def test_metrics_of_sets_by_hand():
    pair = torch.tensor([[1.0, 0.0], [0.6, 0.6]])
    assert hypervolume(pair).item() == pytest.approx(0.36)
    assert hypervolume(torch.tensor([[0.25, 0.85], [0.85, 0.25]])).item() == pytest.approx(
        0.25 * 0.85 + 0.6 * 0.25
    )
    # At weights (0, 1) the set has 0.6 and there is 1.
    assert worst_regret(pair, BASE).item() == pytest.approx(0.4)
    assert worst_regret(BASE, BASE).item() == 0
    # At (1/2, 1/2) the two ends have 0.5, and there is 0.6.
    assert worst_regret(BASE[[0, 4]], BASE).item() == pytest.approx(0.1)
    assert coverage(BASE[[0, 2, 2, 6]], BASE).item() == pytest.approx(2 / 5)


def test_chances_of_subsets_are_those_of_listed_sets():
    generator = torch.Generator().manual_seed(0)
    chances = torch.rand(2, 3, generator=generator).softmax(-1)
    # Slot 0 answers twice, slot 1 once.
    expected = torch.zeros(8)
    for one, two, three in product(range(3), repeat=3):
        held = 1 << one | 1 << two | 1 << three
        expected[held] += chances[0, one] * chances[0, two] * chances[1, three]
    exactly = subset_chances(chances, torch.tensor([2, 1]))
    assert exactly.tolist() == pytest.approx(expected.tolist(), abs=1e-7)
    values = subset_vectors(BASE)[2**0 + 2**4 - 1]
    assert {tuple(row) for row in values.tolist()} == {(1.0, 0.0), (0.0, 1.0)}


def test_exact_columns_are_expectations_over_all_sets():
    watched, policy = examiner()
    weights = policy.init((0, 1)) * 2
    chances = policy.slot_table(weights).exp()
    sets = torch.tensor(list(product(range(7), repeat=3)))
    weight = torch.stack([chances[:, :, slot, sets[:, slot]] for slot in range(3)]).prod(0)
    vectors = TASK.vectors[:, sets]
    available = TASK.vectors.unsqueeze(1)
    worths = {
        "set_score": exact_set_score(vectors),
        "set_score_at_3": exact_set_score(vectors),
        "best_at_3": best_scalar(vectors, GOLD),
        "best_at_1": (vectors @ GOLD)[..., 0],
        "mean_scalar_reward": (vectors @ GOLD).mean(-1),
        "hypervolume_at_3": hypervolume(vectors),
        "worst_regret_at_3": worst_regret(vectors, available),
        "coverage_at_3": coverage(vectors, available),
    }
    columns = watched.examine(weights, 0)
    for name, worth in worths.items():
        expected = (weight * worth).sum(-1).mean(1)
        assert columns[name].tolist() == pytest.approx(expected.tolist(), abs=1e-5), name


@pytest.mark.parametrize("slots", [1, 3])
def test_the_original_samples_what_is_exact_here(slots):
    exact, policy = examiner(slots)
    sampled, _ = examiner(slots, samples=True)
    weights = policy.init((0, 1))
    expected = exact.examine(weights, 0)
    many = [sampled.examine(weights, step) for step in range(60)]
    for name in ("mean_scalar_reward", "best_at_1", "best_at_3", "best_at_9", "pool_diversity_l1"):
        drawn = torch.stack([each[name] for each in many])
        error = drawn.std(0) / len(many) ** 0.5
        assert ((drawn.mean(0) - expected[name]).abs() <= 4 * error + 1e-6).all(), name
