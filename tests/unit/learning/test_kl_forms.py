"""The expected gradient of each form of the KL penalty, added up over a whole vocabulary."""

from pathlib import Path
from typing import get_args

import pytest
import torch

from hgrpo.formulas.kl import (
    KL_FORMS,
    kl_k2,
    kl_k3,
    kl_k3_k2_gradient,
    kl_penalty,
)
from hgrpo.learning.settings import KlConfig, KlForm

LOGITS = torch.tensor([0.3, -0.7, 1.1, 0.0], dtype=torch.float64)
REFERENCE = torch.tensor([1.0, 0.2, -0.4, 0.1], dtype=torch.float64).log_softmax(0)
FORMS = {**KL_FORMS, "k1": lambda new, reference: new - reference}


def expected_gradient(form, reference=REFERENCE):
    """The gradient that the penalty has on average over tokens that the policy samples."""
    logits = LOGITS.clone().requires_grad_()
    logp = logits.log_softmax(0)
    (logp.detach().exp() * FORMS[form](logp, reference)).sum().backward()
    return logits.grad


def gradient_of(divergence):
    logits = LOGITS.clone().requires_grad_()
    divergence(logits.log_softmax(0)).backward()
    return logits.grad


def to_reference(logp):
    """KL(policy || reference)."""
    return (logp.exp() * (logp - REFERENCE)).sum()


def from_reference(logp):
    """KL(reference || policy)."""
    return (REFERENCE.exp() * (REFERENCE - logp)).sum()


@pytest.mark.parametrize(
    ("form", "divergence"),
    [("k2", to_reference), ("k3_k2_gradient", to_reference), ("k3", from_reference)],
)
def test_whose_gradient_a_form_has(form, divergence):
    assert torch.allclose(expected_gradient(form), gradient_of(divergence))


def test_k1_does_not_know_the_reference_and_is_refused():
    uniform = torch.full((4,), 0.25, dtype=torch.float64).log()
    assert torch.allclose(expected_gradient("k1"), torch.zeros(4, dtype=torch.float64))
    assert torch.allclose(expected_gradient("k1", uniform), expected_gradient("k1"))
    for name in ("k1", "kl"):
        with pytest.raises(ValueError, match="does not depend on the reference"):
            KlConfig(form=name)


def test_the_divergences_differ():
    assert not torch.allclose(gradient_of(to_reference), gradient_of(from_reference), atol=1e-2)


def test_values_by_hand():
    new, reference = torch.tensor([0.0]), torch.tensor([2.0]).log()
    assert kl_k2(new, reference).item() == pytest.approx(0.5 * 0.6931472**2)
    assert kl_k3_k2_gradient(new, reference).item() == kl_k3(new, reference).item()
    assert kl_k3(new, reference).item() == pytest.approx(1 - 0.6931472)


def test_k3s_value_is_unbiased():
    logp = LOGITS.log_softmax(0)
    mean = (logp.exp() * kl_k3(logp, REFERENCE)).sum()
    assert mean.item() == pytest.approx(to_reference(logp).item())


def after_steps(number):
    """The policy's logits after exact policy-gradient steps of rate 2, from `LOGITS` on."""
    advantages, logits = torch.tensor([1.0, -1.0, 0.5, -0.5], dtype=torch.float64), LOGITS
    for _ in range(number):
        p = logits.softmax(0)
        logits = logits + 2.0 * p * (advantages - (p * advantages).sum())
    return logits


def token_gradients(form, logits):
    """The gradient of the penalty at each token, [vocabulary, vocabulary]."""
    logits = logits.clone().requires_grad_()
    terms = kl_penalty(form, logits.log_softmax(0), REFERENCE, LOGITS.log_softmax(0))
    return torch.stack([torch.autograd.grad(t, logits, retain_graph=True)[0] for t in terms])


def errors(form, steps):
    """Relative error of the expected gradient, and relative deviation of a token's gradient.

    `LOGITS` sampled the tokens; the policy has since taken `steps`.
    """
    logits, played = after_steps(steps), LOGITS.softmax(0)[:, None]
    variable = logits.clone().requires_grad_()
    to_reference(variable.log_softmax(0)).backward()
    gradients, size = token_gradients(form, logits), variable.grad.norm()
    mean = (played * gradients).sum(0)
    deviation = (played * (gradients - mean).square()).sum().sqrt()
    return float((mean - variable.grad).norm() / size), float(deviation / size)


def test_the_ratio_makes_the_gradient_unbiased_after_any_number_of_steps():
    for steps in (0, 1, 2, 4):
        assert errors("k3_ratio", steps)[0] < 1e-12
        assert errors("k3", steps)[0] > 0.2
    assert errors("k2", 0)[0] < 1e-12 and errors("k2", 1)[0] > 0.05
    assert errors("k2", 4) == pytest.approx(errors("k3_k2_gradient", 4))


def test_k3_ratio_by_hand():
    """p = 0.5, p_ref = 0.25, p_played = 0.2: 2.5 (0.5 - 1 + log 2), and its derivative by log p."""
    new = torch.tensor([0.5], dtype=torch.float64).log().requires_grad_()
    others = (torch.tensor([p], dtype=torch.float64).log() for p in (0.25, 0.2))
    value = kl_penalty("k3_ratio", new, *others)
    value.sum().backward()
    assert value.item() == pytest.approx(2.5 * (0.6931472 - 0.5))
    assert new.grad.item() == pytest.approx(2.5 * (0.6931472 - 0.5) + 2.5 * (1 - 0.5))


def test_the_table_in_the_docs_is_computed_here():
    page = (Path(__file__).parents[3] / "docs" / "methods.md").read_text(encoding="utf-8")
    for form in get_args(KlForm):
        rows = [errors(form, steps) for steps in (0, 1, 2, 4)]
        cells = [
            *(f"{bias:.3f}" for bias, _ in rows),
            f"{rows[0][1]:.1f}",
            f"{rows[3][1]:.1f}",
        ]
        assert f"| `{form}` | {' | '.join(cells)} |" in page, (form, cells)
