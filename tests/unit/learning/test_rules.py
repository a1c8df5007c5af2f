"""Update rules as objectives of agents: what each trains, and what is refused."""

import numpy as np
import pytest
import torch
from one_update import TRAINING, gradient
from test_update import FLAT, sequences, setting  # noqa: F401

from hgrpo.config.read import UserError, validate
from hgrpo.formulas import kinds
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import KlConfig, TrainingConfig
from hgrpo.learning.update import minibatches
from hgrpo.policy.logprobs import make_batch, sampled_logprobs

OF_TOKENS = ("PPOClip", "DualClip", "REINFORCE", "PG", "ASPO", "R2VPO")
OF_GROUPS = ("GroupPG", "TPONoAnchor", "TPO")
ALONE = TRAINING.model_copy(update={"kl": KlConfig(init=0.0, watch=False)})


def played_by(policy, batch):
    """The batch, as if the policy itself had played it: every ratio is 1."""
    for sequence in batch:
        sequence.behaviour = scores(policy, [sequence])[0].detach()
    return batch


def scores(policy, batch):
    """Log-probs of each sequence's sampled tokens, with their gradient."""
    padded = make_batch([s.token_ids for s in batch], [s.spans for s in batch], policy.device)
    logprobs, _ = sampled_logprobs(policy.causal_lm, padded, TRAINING.temperature, False)
    return logprobs.split([s.sampled for s in batch])


def test_every_rule_is_named_and_tested():
    of_users = {name for name in kinds.known() if "our own" in kinds.load(name).__doc__}
    assert set(kinds.known()) - of_users == {*OF_TOKENS, "DG", *OF_GROUPS}


def test_rules_that_weigh_by_ratios_agree_where_every_ratio_is_one(setting):  # noqa: F811
    policy, groups = setting
    batch = played_by(policy, sequences(groups, FLAT))
    first, _ = gradient(policy, batch, ALONE)
    assert first.norm() > 0
    for rule in OF_TOKENS:
        other, row = gradient(policy, batch, ALONE, rule=rule)
        assert (first - other).norm() < 1e-5 * first.norm(), rule
        assert row["clip_fraction"] == 0


def test_rules_differ_off_the_policy_that_played(setting):  # noqa: F811
    policy, groups = setting
    batch = sequences(groups, FLAT)
    gradients = {name: gradient(policy, batch, ALONE, rule=name)[0] for name in kinds.known()}
    names = [name for name in gradients if name != "DualClip"]
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            assert (gradients[one] - gradients[other]).norm() > 1e-3 * gradients[one].norm(), (
                one,
                other,
            )


def test_the_gate_of_dg_by_hand(setting):  # noqa: F811
    policy, groups = setting
    batch = sequences(groups, FLAT)
    logprobs = torch.cat(scores(policy, batch))
    advantages = torch.cat([s.advantages for s in batch])
    gates = 1 / (1 + torch.exp(advantages * logprobs.detach() / 0.5))
    loss = -(gates * advantages * logprobs).mean()
    expected = by_autograd(policy, loss)
    moved, row = gradient(policy, batch, ALONE, rule="DG", eta=0.5)
    assert (expected - moved).norm() < 1e-3 * expected.norm()
    assert row["policy_loss"] == pytest.approx(float(loss.detach()), rel=1e-4)


@pytest.mark.parametrize("rule", OF_GROUPS)
def test_two_passes_give_the_exact_gradient_of_whole_groups(setting, rule):  # noqa: F811
    """The loss over a group in one forward pass, against the learner with micro-batches."""
    policy, groups = setting
    batch = sequences(groups, FLAT)
    now = torch.stack([each.sum() for each in scores(policy, batch)]).view(-1, 8)
    old = torch.stack([s.behaviour.sum() for s in batch]).view(-1, 8)
    skills = torch.stack([s.advantages[0] for s in batch]).view(-1, 8) / 2.0
    if rule == "GroupPG":
        losses = -(skills * now).sum(1)
    else:
        anchor = old.log_softmax(1) if rule == "TPO" else 0.0
        losses = -((anchor + skills).softmax(1) * now.log_softmax(1)).sum(1)
    expected = by_autograd(policy, losses.mean())
    training = ALONE.model_copy(update={"microbatch_tokens": 60})
    order = np.random.default_rng(3).permutation(len(batch)).tolist()
    moved, row = gradient(policy, batch, training, order, rule=rule, eta=2.0)
    assert (expected - moved).norm() < 1e-3 * expected.norm()
    assert row["policy_loss"] == pytest.approx(float(losses.mean().detach()), rel=1e-4)


def by_autograd(policy, loss):
    """The loss's gradient, before anything changes the weights."""
    parameters = [parameter for _, parameter in policy.trainable]
    moved = torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)])
    assert moved.norm() > 0
    return moved


def test_minibatches_of_whole_groups():
    training = TrainingConfig(rollouts_per_task=3, minibatches=2)
    order = [7, 0, 4, 8, 3, 1, 6, 2]
    assert minibatches(order, training) == [[7, 0, 4, 8], [3, 1, 6, 2]]
    assert minibatches(order, training, whole_groups=True) == [[7, 8, 6, 0, 1, 2], [4, 3]]
    sized = training.model_copy(update={"minibatch_trajectories": 3})
    assert minibatches(order, sized, whole_groups=True) == [[7, 8, 6], [0, 1, 2], [4, 3]]
    assert minibatches([4], training) == minibatches([4], training, whole_groups=True) == [[4]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": {"rule": "TPOs"}}, "unknown update rule 'TPOs'; did you mean 'TPO'?"),
        (
            {"objective": {"rule": "CE"}},
            "CE requires the correct answer at every token",
        ),
        ({"objective": {"rule": "PG", "eta": 1}}, "objective.eta: unknown key"),
        ({"objective": {"rule": "TPO"}, "alpha": 0.5}, "TPO compares whole trajectories"),
    ],
)
def test_what_a_rule_cannot_train_is_refused(settings, message):
    with pytest.raises(UserError) as error:
        validate(MethodConfig, {"name": "some", **settings}, "some.yaml")
    assert message in str(error.value)
