import copy

import numpy as np
import pytest
import torch
from hall import collect
from one_update import TRAINING, gradient, rewarded
from tiny_policy import make_policy
from torch.optim import SGD

from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import TrainingError
from hgrpo.learning.batch import group_advantages, training_sequences
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import KlConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.logprobs import make_batch, sampled_logits, token_logprobs


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A policy, its reference (other weights), and groups it played."""
    folder = tmp_path_factory.mktemp("base")
    policy = make_policy(folder)
    groups = rewarded(collect(policy, 32))
    policy.load_reference(folder)
    with torch.no_grad():
        for _, parameter in policy.trainable:
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    return policy, groups


def sequences(groups, method, training=TRAINING):
    assigner = make_assigner(method.credit, Context())
    groups = copy.deepcopy(groups)
    alive = []
    for group in groups:
        named = Group(group, ("test", group[0].task.task_id))
        result = group_advantages(named, assigner.assign(named), method, training)
        if not result.dead:
            alive += group
    return training_sequences(alive)


FLAT = MethodConfig(name="flatGRPO")


def learner_of(policy):
    optimiser = SGD([parameter for _, parameter in policy.trainable], lr=1.0)
    return Learner(policy, optimiser, TRAINING.kl.init, TRAINING, None)


def test_alpha_one_is_flat_grpo_to_the_bit(setting):
    policy, groups = setting
    flat, _ = gradient(policy, sequences(groups, FLAT))
    for kind in ("progress", "random"):
        method = MethodConfig(name="x", credit=CreditConfig(kind=kind), alpha=1.0)
        moved, _ = gradient(policy, sequences(groups, method))
        assert torch.equal(moved, flat)
    half = MethodConfig(name="x", credit=CreditConfig(kind="progress"), alpha=0.5)
    assert not torch.equal(gradient(policy, sequences(groups, half))[0], flat)


@pytest.mark.parametrize(
    ("reduction", "budget", "bonus"), [("sequence", 1, 0.0), ("token", 60, 0.3)]
)
def test_micro_batch_size_and_padding_do_not_change_the_gradient(setting, reduction, budget, bonus):
    policy, groups = setting
    changes = {"loss_reduction": reduction, "entropy_bonus": bonus}
    training = TRAINING.model_copy(update=changes)
    batch = sequences(groups, FLAT)
    whole, _ = gradient(policy, batch, training)
    cut, _ = gradient(policy, batch, training.model_copy(update={"microbatch_tokens": budget}))
    assert (whole - cut).norm() < 1e-4 * whole.norm()


def test_gradient_is_that_of_the_textbook_loss(setting):
    """One padded forward pass, the loss written out, against the micro-batched learner."""
    policy, groups = setting
    batch = sequences(groups, FLAT)
    moved, _ = gradient(policy, batch)
    padded = make_batch([s.token_ids for s in batch], [s.spans for s in batch])

    def written_out(model):
        logp = model(input_ids=padded.token_ids).logits.float().log_softmax(-1)
        chosen = padded.token_ids[padded.rows, padded.columns]
        return logp[padded.rows, padded.columns - 1, chosen]

    logprobs = written_out(policy.causal_lm)
    with torch.no_grad(), policy.reference() as reference:
        anchored = written_out(reference)
    advantages = torch.cat([s.advantages for s in batch])
    ratio = (logprobs - torch.cat([s.behaviour for s in batch])).exp()
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    d = anchored - logprobs
    loss = -surrogate + 0.1 * (d.exp() - 1 - d).mean()
    parameters = [parameter for _, parameter in policy.trainable]
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
    assert (moved - expected).norm() < 1e-4 * expected.norm()


CAPPED = TRAINING.model_copy(update={"importance_cap": 1.05})


def shifted(batch, seed=4):
    """The batch as reported by an engine whose log-probs are off by up to 0.2."""
    rng = torch.Generator().manual_seed(seed)
    batch = copy.deepcopy(batch)
    for sequence in batch:
        sequence.behaviour = sequence.behaviour + 0.2 * (
            2 * torch.rand(sequence.behaviour.shape, generator=rng) - 1
        )
    return batch


def trainer_logprobs(policy, batch):
    padded = make_batch([s.token_ids for s in batch], [s.spans for s in batch])
    return token_logprobs(sampled_logits(policy.causal_lm, padded), padded)


def test_gradient_of_a_corrected_batch_is_that_of_the_textbook_loss(setting):
    """Before the first step the ratio is 1: the engine's log-probs only set the weights."""
    policy, groups = setting
    without_kl = CAPPED.model_copy(update={"kl": KlConfig(init=0.0)})
    batch = shifted(sequences(groups, FLAT))
    moved, row = gradient(policy, batch, without_kl)
    logprobs = trainer_logprobs(policy, batch)
    behaviour = torch.cat([s.behaviour for s in batch])
    raw = (logprobs - behaviour).exp().detach()
    advantages = torch.cat([s.advantages for s in batch])
    loss = -(raw.clamp(max=1.05) * (logprobs - logprobs.detach()).exp() * advantages).mean()
    parameters = [parameter for _, parameter in policy.trainable]
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
    assert (moved - expected).norm() < 1e-4 * expected.norm()
    assert row["importance_mean"] == pytest.approx(raw.clamp(max=1.05).mean().item(), rel=1e-4)
    assert row["importance_truncated"] == pytest.approx((raw > 1.05).float().mean().item())
    assert 0.2 < row["importance_truncated"] < 0.8
    assert row["mismatch_kl"] == pytest.approx((raw - 1 - raw.log()).mean().item(), rel=1e-3)
    assert row["ratio_mean"] == pytest.approx(1.0, abs=1e-4)
    assert row["clip_fraction"] == 0.0


def test_the_trainers_logprobs_are_those_before_the_first_step(setting):
    """The second of two minibatches is clipped around them, not around the engine's."""
    policy, groups = setting
    batch = shifted(sequences(groups, FLAT))
    halves = CAPPED.model_copy(update={"minibatches": 2})
    expected = trainer_logprobs(policy, batch).detach()
    gradient(policy, batch, halves)
    assert (torch.cat([s.old for s in batch]) - expected).abs().max() < 1e-4


def test_without_a_cap_the_engines_logprobs_are_the_start_and_the_mismatch_is_watched(setting):
    policy, groups = setting
    batch = shifted(sequences(groups, FLAT))
    _, row = gradient(policy, batch)
    assert all(sequence.old is None for sequence in batch)
    difference = trainer_logprobs(policy, batch).detach() - torch.cat([s.behaviour for s in batch])
    assert row["mismatch_max"] == pytest.approx(difference.abs().max().item(), rel=1e-4)
    expected = (difference.exp() - 1 - difference).mean().item()
    assert row["mismatch_kl"] == pytest.approx(expected, rel=1e-3)
    assert row["ratio_mean"] == pytest.approx(difference.exp().mean().item(), rel=1e-4)
    assert (row["importance_mean"], row["importance_truncated"]) == (1.0, 0.0)


def test_missing_logprobs_are_an_error(setting):
    _, groups = setting
    group = copy.deepcopy(groups[0])
    zeros = [np.zeros(len(trajectory.turns)) for trajectory in group]
    group_advantages(Group(group, ("x",)), zeros, FLAT, TRAINING)
    group[0].turns[1].logprobs.pop()
    with pytest.raises(
        RuntimeError, match=r"rollout 0 turn 1: expected \d+ log-probs, one per token, got \d+"
    ):
        training_sequences(group)


def test_gradient_norm_is_clipped(setting):
    policy, groups = setting
    training = TRAINING.model_copy(update={"max_grad_norm": 1e-3})
    moved, row = gradient(policy, sequences(groups, FLAT), training)
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-3)
    assert row["grad_norm"] > 1e-3


def test_a_penalty_that_is_off_is_watched_on_some_and_moves_nothing(setting):
    policy, groups = setting
    off = TRAINING.model_copy(update={"kl": KlConfig(init=0.0)})
    batch = sequences(groups, FLAT)
    moved, row = gradient(policy, batch, off)
    # The entropy is measured without a bonus, too.
    assert row["entropy"] > 0 == row["entropy_term"] == row["kl_term"]
    scored = [sequence for sequence in batch if sequence.reference is not None]
    assert 0 < len(scored) <= len(batch) // 8 + 1
    _, full = gradient(policy, sequences(groups, FLAT))
    assert row["observed_kl"] == pytest.approx(full["observed_kl"], rel=0.3)
    _, alone = gradient(policy, scored)
    assert row["observed_kl"] == pytest.approx(alone["observed_kl"], rel=1e-4)
    empty, nothing = gradient(policy, sequences(groups, FLAT), order=[])
    assert not empty.any() and nothing["policy_loss"] is None and set(nothing) == set(row)
    # Trajectories that take no part are watched too, so that arms with many dead groups compare.
    part, some = gradient(policy, sequences(groups, FLAT), off, order=list(range(1, 20)))
    assert not torch.equal(part, moved)
    assert some["observed_kl"] == row["observed_kl"]
    with policy.reference() as reference:
        held = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
        for tensor in reference.state_dict().values():
            tensor.mul_(0.5)
    other, _ = gradient(policy, sequences(groups, FLAT), off)
    with policy.reference() as reference:
        reference.load_state_dict(held)
    assert torch.equal(moved, other)


QUIET = TRAINING.model_copy(update={"kl": KlConfig(init=0.0, watch=False)})


def difference_of_gradients(policy, batch, **changes):
    """What the changed settings add to the gradient of the plain update."""
    plain, _ = gradient(policy, batch, QUIET)
    changed, row = gradient(policy, batch, QUIET.model_copy(update=changes))
    return changed - plain, row


def test_entropy_bonus_has_the_gradient_of_the_whole_vocabulary(setting):
    policy, groups = setting
    batch = sequences(groups, FLAT)
    added, row = difference_of_gradients(policy, batch, entropy_bonus=0.3)
    padded = make_batch([s.token_ids for s in batch], [s.spans for s in batch])
    logp = policy.causal_lm(input_ids=padded.token_ids).logits.float().log_softmax(-1)
    chosen = logp[padded.rows, padded.columns - 1]
    loss = 0.3 * (chosen.exp() * chosen).sum(1).mean()
    parameters = [parameter for _, parameter in policy.trainable]
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
    assert (added - expected).norm() < 1e-3 * expected.norm()
    assert row["entropy_term"] == pytest.approx(loss.item(), rel=1e-4)
    assert row["entropy_term"] == pytest.approx(-0.3 * row["entropy"], rel=1e-4)


def test_a_kl_that_is_off_and_unwatched_asks_no_reference(setting, monkeypatch):
    policy, groups = setting

    def fail():
        raise AssertionError("the reference was asked")

    batch = sequences(groups, FLAT)
    watched, row = gradient(policy, batch, TRAINING.model_copy(update={"kl": KlConfig(init=0.0)}))
    assert row["observed_kl"] > 0
    monkeypatch.setattr(policy, "reference", fail)
    unwatched, row = gradient(policy, batch, QUIET)
    assert row["observed_kl"] is None
    assert torch.equal(watched, unwatched)


def test_dr_grpos_reduction_sums_tokens_and_divides_by_a_constant(setting):
    policy, groups = setting
    batch = sequences(groups, FLAT)
    tokens = sum(len(s.behaviour) for s in batch)
    mean, _ = gradient(policy, batch, QUIET)
    constant = {"loss_reduction": "constant", "loss_constant": 20}
    moved, _ = gradient(policy, batch, QUIET.model_copy(update=constant))
    assert (moved - mean * tokens / (len(batch) * 20)).norm() < 1e-4 * moved.norm()


def test_a_ratio_weighted_kl_trains_as_k3_before_a_step_and_is_logged(setting):
    """Where the policy is the one that played, the ratio is 1 and its gradient adds the term."""
    policy, groups = setting
    batch = copy.deepcopy(sequences(groups, FLAT))
    for sequence, logprobs in zip(batch, learner_of(policy).score(batch), strict=True):
        sequence.behaviour = logprobs
    by_form = {}
    for form in ("k3", "k3_ratio"):
        training = TRAINING.model_copy(update={"kl": KlConfig(init=0.1, form=form)})
        by_form[form] = gradient(policy, batch, training)
    assert by_form["k3_ratio"][1]["kl_term"] == pytest.approx(by_form["k3"][1]["kl_term"], rel=1e-4)
    assert not torch.allclose(by_form["k3_ratio"][0], by_form["k3"][0])
    for sequence in batch:
        sequence.behaviour = sequence.behaviour - 0.1
    training = TRAINING.model_copy(update={"kl": KlConfig(init=0.1, form="k3_ratio")})
    _, moved = gradient(policy, batch, training)
    expected = np.exp(0.1) * by_form["k3"][1]["kl_term"]
    assert moved["kl_term"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("objective", [{}, {"rule": "TPO"}])
def test_a_log_prob_that_is_not_finite_names_task_and_turn(setting, objective):
    policy, groups = setting
    batch = copy.deepcopy(sequences(groups, FLAT))
    place = len(batch) // 2
    first = batch[place].spans[0][1] - batch[place].spans[0][0]
    batch[place].behaviour[first] = float("nan")
    before = policy.trained_state()
    quiet = TRAINING.model_copy(update={"mismatch_limit": None, "kl": KlConfig(watch=False)})
    with pytest.raises(
        TrainingError, match=rf"is not finite .*first in {batch[place].name} turn 1$"
    ):
        gradient(policy, batch, quiet, **objective)
    assert all(torch.equal(before[name], p) for name, p in policy.trainable)
