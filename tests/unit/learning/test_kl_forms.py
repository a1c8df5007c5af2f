"""The expected gradient of each form of the KL penalty, added up over a whole vocabulary."""

import pytest
import torch

from hgrpo.learning.objectives.kl import KL_FORMS, kl_k2, kl_k3, kl_k3_k2_gradient
from hgrpo.learning.settings import KlConfig

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
