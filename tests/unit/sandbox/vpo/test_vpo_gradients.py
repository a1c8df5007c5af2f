"""Credit of single slots: the exact gradient on average, and with less noise."""

from dataclasses import replace

import torch

from hgrpo.formulas.pg import policy_gradient
from hgrpo.sandbox.vpo.settings import VpoSettings
from hgrpo.sandbox.vpo.train import Trainer

PROMPTS = 8
RUN = {"seeds": (0,), "num_prompts": PROMPTS, "hidden": 8, "batch_size": 4096, "group_size": 8}


def gradients(credit: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Policy gradients [20, P] of single batches with the raw credit, and the exact one."""
    trainer = Trainer(VpoSettings(**RUN, rule={"score": "exact", "credit": credit}))
    parts = []
    for step in range(20):
        trainer.step = step
        batch = trainer.sample()
        weights = trainer.weights.clone().requires_grad_()
        table = trainer.policy.table(weights, batch.inputs["policy"], batch.actions)
        chosen = table.gather(-1, batch.actions.unsqueeze(-1))[..., 0, 0]
        terms = policy_gradient(chosen, batch.extras["credit"]).sum(-1)
        parts.append(-torch.autograd.grad(terms.mean(), weights)[0][0])
    return torch.stack(parts), trainer.exact_gradient()[0].float()


def test_marginal_credit_is_unbiased_and_varies_less():
    spread = {}
    for credit in ("shared", "marginal"):
        parts, exact = gradients(credit)
        error = parts.std(0) / len(parts) ** 0.5
        apart = (parts.mean(0) - exact) / (error + 1e-6)
        # Near-normal deviations: their mean square is about 1 if there is no bias.
        assert apart.square().mean() < 2
        assert torch.cosine_similarity(parts.mean(0), exact, dim=0) > 0.9
        spread[credit] = parts.var(0).sum().item()
    assert spread["marginal"] < 0.2 * spread["shared"]


def test_sets_of_equal_worth_have_no_gradient_and_order_does_not_matter():
    trainer = Trainer(VpoSettings(**RUN | {"batch_size": 64}, rule={"score": "exact"}))
    batch = trainer.sample()
    vectors = batch.extras["vectors"]
    scores, _ = trainer.rule.score_of(vectors, None)
    turned, _ = trainer.rule.score_of(vectors.flip(3), None)
    assert scores.equal(turned)
    equal = replace(batch, extras={"credit": torch.full_like(batch.extras["credit"], 0.1)})
    weights = trainer.weights.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(trainer.loss(equal, weights).loss.sum(), weights)
    assert gradient.abs().max() == 0


def test_groups_share_the_drawn_weights_and_arms_their_first_weights():
    arms = [
        Trainer(VpoSettings(**RUN | {"batch_size": 64}, rule={"score": score}))
        for score in ("drawn", "exact")
    ]
    assert arms[0].weights.equal(arms[1].weights)
    first, second = (arm.sample() for arm in arms)
    assert first.actions.equal(second.actions)
    drawn = arms[0].preferences()
    assert drawn.shape == (1, 8, 16, 2) and torch.allclose(drawn.sum(-1), torch.tensor(1.0))
    by_hand = (first.extras["vectors"][0, 3] @ drawn[0, 3].T).amax(1).mean(-1)
    assert torch.allclose(first.rewards[0, 3], by_hand)


def test_arms_with_sets_of_any_size_share_prompts_and_first_weights():
    several = Trainer(VpoSettings(**RUN | {"batch_size": 64}))
    alone = {"batch_size": 64, "method": "ScalarGRPO", "num_candidates": 1}
    single = Trainer(VpoSettings(**RUN | alone))
    # The first slot of a set starts like the only one.
    assert single.weights.equal(several.weights[:, : single.weights.shape[1]])
    first = single.policy.slot_table(single.weights)[:, :, 0]
    assert torch.allclose(first, several.policy.slot_table(several.weights)[:, :, 0], atol=1e-6)
    prompts = [arm.sample().inputs["policy"] for arm in (single, several)]
    assert prompts[0].equal(prompts[1])
