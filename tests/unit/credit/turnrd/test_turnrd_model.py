"""TurnRD's networks: weights over turns that depend on the trajectory alone."""

import pytest
import torch

from hgrpo.credit.turnrd.model import TurnBatch, build_model
from hgrpo.credit.turnrd.settings import ModelSettings, Settings

WIDTH = 6
V1 = ModelSettings(version="v1", layers=2, hidden=16, heads=2, max_turns=8)
V2 = ModelSettings(version="v2", layers=2, hidden=16, heads=2, max_turns=8)
FILM = V2.model_copy(update={"film": True})


def batch(lengths, padding=0, seed=0) -> TurnBatch:
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths) + padding
    turns = torch.randn(len(lengths), longest, WIDTH, generator=generator)
    mask = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    goals = torch.randn(len(lengths), WIDTH, generator=generator)
    return TurnBatch(turns, mask, goals)


def alone(inputs: TurnBatch, row: int, padding: int) -> TurnBatch:
    """One trajectory of a batch, with other padding that is full of large numbers."""
    length = int(inputs.mask[row].sum())
    turns = torch.full((1, length + padding, WIDTH), 1e3)
    turns[0, :length] = inputs.turns[row, :length]
    mask = torch.arange(length + padding)[None] < length
    return TurnBatch(turns, mask, inputs.goals[row : row + 1])


@pytest.mark.parametrize("settings", [V1, V2, FILM], ids=["v1", "v2", "film"])
def test_what_is_said_of_a_trajectory_does_not_depend_on_its_batch(settings):
    model = build_model(settings, WIDTH, 3).eval()
    inputs = batch([5, 1, 3, 7], padding=2)
    together = model(inputs)
    for row, padding in ((0, 0), (1, 4), (2, 9)):
        length = int(inputs.mask[row].sum())
        output = model(alone(inputs, row, padding))
        for name in ("alpha", "values"):
            one, many = getattr(output, name)[0], getattr(together, name)[row]
            torch.testing.assert_close(one[:length], many[:length], rtol=1e-4, atol=1e-5)
            assert not one[length:].any() and not many[length:].any()
        torch.testing.assert_close(output.returns[0], together.returns[row], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [V1, V2, FILM], ids=["v1", "v2", "film"])
def test_alpha_is_a_distribution_over_the_turns(settings):
    output = build_model(settings, WIDTH, 3).eval()(batch([5, 1, 3]))
    assert (output.alpha >= 0).all()
    torch.testing.assert_close(output.alpha.sum(-1), torch.ones(3))
    assert output.alpha[1, 0] == 1


def test_v2_returns_are_the_weighted_values():
    output = build_model(V2, WIDTH, 3).eval()(batch([5, 2]))
    torch.testing.assert_close(output.returns, (output.alpha * output.values).sum(-1))


def test_v1_sees_no_later_turn_and_v2_does():
    for settings, causal in ((V1, True), (V2, False)):
        model = build_model(settings, WIDTH, 3).eval()
        inputs = batch([4])
        changed = TurnBatch(inputs.turns.clone(), inputs.mask, inputs.goals)
        changed.turns[0, 3] += 5
        before, after = model(inputs).hidden[0, :3], model(changed).hidden[0, :3]
        assert torch.allclose(before, after, atol=1e-6) == causal


def test_the_slope_ends_at_the_trajectorys_own_last_turn():
    model = build_model(V2, WIDTH, 3).eval()
    for parameter in model.score.parameters():
        torch.nn.init.zeros_(parameter)
    alpha = model(batch([3, 5])).alpha
    for row, length in ((0, 3), (1, 5)):
        expected = torch.softmax(torch.arange(length) / (length - 1), -1)
        torch.testing.assert_close(alpha[row, :length], expected)


def test_film_starts_as_no_film_and_then_listens_to_the_goal():
    film, plain = build_model(FILM, WIDTH, 3), build_model(V2, WIDTH, 3)
    film.load_state_dict(plain.state_dict(), strict=False)
    film, plain, inputs = film.eval(), plain.eval(), batch([4, 2])
    torch.testing.assert_close(film(inputs).alpha, plain(inputs).alpha)
    with torch.no_grad():
        film.film["scale"].weight.normal_(generator=torch.Generator().manual_seed(1))
    other = TurnBatch(inputs.turns, inputs.mask, inputs.goals.flip(0))
    assert not torch.allclose(film(inputs).alpha, film(other).alpha, atol=1e-3)
    with pytest.raises(ValueError, match="requires goals"):
        film(TurnBatch(inputs.turns, inputs.mask))


def test_the_same_seed_builds_the_same_model():
    one, two, other = (build_model(V1, WIDTH, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["query"], other["query"])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model": {"hidden": 30}}, "must be a multiple of `heads`"),
        ({"model": {"version": "v2", "value_head": False}}, "required with `version: v2`"),
        ({"model": {"version": "v1", "film": True}}, "film: not supported with `version: v1`"),
        (
            {"readout": "projected_value", "model": {"version": "v1", "value_head": False}},
            "fit.value_weight` uses it",
        ),
        ({"fit": {"supervision_weight": 1.0}}, "or neither"),
        (
            {"fit": {"supervision_weight": 1.0}, "counterfactual": {"turns_per_trajectory": 1}},
            "set it to 2 or more",
        ),
        (
            {"readout": "value_baseline", "model": {"version": "v1"}},
            "readout: value_baseline requires a trained value head",
        ),
        ({"value_clip": 1.0}, "value_clip: 1.0 has an effect only with readout: projected_value"),
        (
            {"fit": {"rank_margin": 0.2}},
            "rank_margin: 0.2 has an effect only with rank_weight above 0",
        ),
        (
            {"fit": {"value_target": "discounted_return", "discount": 0.5}},
            "has an effect only with value_weight above 0",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(**changes)
