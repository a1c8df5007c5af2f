"""Losses of single rules, recomputed token by token in plain Python."""

import math

import pytest
import torch

from hgrpo.formulas.batch import Candidates, Rollout, Seen
from hgrpo.sandbox.rl.settings import RULES

# Probabilities of three actions after each prefix, the actions of two rollouts, and the answer.
P = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]
ACTIONS = [[1, 2, 2], [0, 1, 2]]
LABELS = [0, 1, 2]
ALL, LATE = (1, 1, 1), (0, 1, 1)
BASELINE = 0.25


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def seen(scored):
    """Both rollouts as a batch of two groups of one."""
    actions = torch.tensor(ACTIONS).view(1, 2, 1, 1, 3)
    labels = torch.tensor(LABELS).expand(1, 2, 3)
    table = torch.tensor(P).log().expand(1, 2, 1, 1, 3, 3)
    mask = torch.tensor(scored, dtype=torch.float32)
    right = (actions == labels[:, :, None, None]) * mask
    return Seen(_rollout(actions, right.sum((-1, -2)) / mask.sum(), labels), table, BASELINE, mask)


def _rollout(actions, rewards, labels=None, candidates=None):
    ones = torch.ones(actions.shape)
    return Rollout(
        inputs={},
        actions=actions,
        behaviour=-ones,
        rewards=rewards,
        clean=rewards,
        mask=ones,
        keep=torch.ones(rewards.shape),
        age=torch.zeros(1, dtype=torch.int64),
        labels=labels,
        candidates=candidates,
    )


def tokens(scored):
    """For each token its surprisal, -log p of its label, if it is right, and sum p^2 if scored."""
    for actions in ACTIONS:
        yield [
            (-math.log(p[a]), -math.log(p[y]), float(a == y), on * sum(x * x for x in p))
            for p, a, y, on in zip(P, actions, LABELS, scored, strict=True)
        ]


def dg_token(scored):
    total = 0.0
    for row in tokens(scored):
        for place, (surprisal, _, _, chance) in enumerate(row):
            later = [right for (_, _, right, _), on in zip(row, scored, strict=True) if on]
            # Scored positions are the last ones, so those before `place` go first.
            later = later[max(0, place - scored.count(0)) :]
            credit = sum(later) / len(later) - chance
            total += sigmoid(credit * surprisal) * credit * surprisal
    return total / 6


def self_distill(scored):
    total = 0.0
    for row in tokens(scored):
        for (surprisal, loss, right, chance), on in zip(row, scored, strict=True):
            credit = right * on - chance
            total += sigmoid(credit * surprisal) * (credit * surprisal + 0.5 * loss)
    return total / 6


def scope(scored):
    gradient, losses = 0.0, []
    for row in tokens(scored):
        rewards = [right for (_, _, right, _), on in zip(row, scored, strict=True) if on]
        advantage, failed = sum(rewards) / len(rewards) - BASELINE, False
        for (surprisal, loss, right, _), on in zip(row, scored, strict=True):
            gradient += sigmoid(advantage * surprisal) * advantage * surprisal
            failed = failed or (on and not right)
            losses += [loss] if failed and on else []
    return gradient / 6 + 0.5 * sum(losses) / len(losses)


def variance(scored):
    """The deviation of two rewards is half their difference."""
    rows = list(tokens(scored))
    rewards = [sum(r * on for (_, _, r, _), on in zip(row, scored, strict=True)) for row in rows]
    rewards = [reward / sum(scored) for reward in rewards]
    shrinks, total = 1 + abs(rewards[0] - rewards[1]) / 2, 0.0
    for row, reward in zip(rows, rewards, strict=True):
        advantage = (reward - BASELINE) / shrinks
        total += sum(sigmoid(advantage * s) * advantage * s for s, *_ in row)
    return total / 6


@pytest.mark.parametrize("scored", [ALL, LATE])
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("DGToken", dg_token),
        ("SelfDistillDG", self_distill),
        ("SCOPELite", scope),
        ("RewardVarianceDG", variance),
    ],
)
def test_rules_that_read_labels_or_the_deviation_of_rewards(method, expected, scored):
    loss = RULES[method]().term(seen(scored)).loss
    assert loss.item() == pytest.approx(expected(scored), rel=1e-5)


def test_tpo_over_all_actions():
    # One token, which earns 1: its score is 1 less 0.38, the scores of the others are 0.
    table = torch.tensor(P[0]).log().view(1, 1, 1, 1, 1, 3)
    rollout = _rollout(torch.tensor(1).view(1, 1, 1, 1, 1), torch.ones(1, 1, 1))
    loss = RULES["TPOFullAction"](eta=2.0).term(Seen(rollout, table, 0.0, torch.ones(1))).loss
    # Standardised, one number above two equal ones is the root of 2, and they are -1 / root of 2.
    skills = [-(0.5**0.5), 2**0.5, -(0.5**0.5)]
    weights = [p * math.exp(skill / 2) for p, skill in zip(P[0], skills, strict=True)]
    target = [weight / sum(weights) for weight in weights]
    expected = -sum(q * math.log(p) for q, p in zip(target, P[0], strict=True))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


# Three candidates after each of two prefixes: actions, probabilities when drawn, and rewards.
DRAWN = [[0, 2, 1], [2, 0, 1]]
OLD = [[0.4, 0.4, 0.2], [0.3, 0.4, 0.3]]
EARNED = [[1, 0, 1], [0, 1, 0]]
# The standardised rewards.
SKILLS = [[0.5**0.5, -(2**0.5), 0.5**0.5], [-(0.5**0.5), 2**0.5, -(0.5**0.5)]]


def candidates():
    """The candidates as a batch of one rollout of two tokens, with a leaf as its table."""
    shape = (1, 1, 1, 1, 2, 3)
    drawn = Candidates(
        torch.tensor(DRAWN).view(shape),
        torch.tensor(OLD).log().view(shape),
        torch.tensor(EARNED).float().view(shape),
    )
    table = torch.tensor(P[:2]).log().view(shape).requires_grad_()
    actions = drawn.actions[..., 0]
    return Seen(_rollout(actions, torch.ones(1, 1, 1), None, drawn), table, 0.0, torch.ones(2))


def test_tpo_over_candidates():
    batch = candidates()
    loss = RULES["TPOToken"](eta=2.0).term(batch).loss
    (gradient,) = torch.autograd.grad(loss.sum(), batch.table)
    total, moved = 0.0, torch.zeros(2, 3)
    for place in range(2):
        now = [P[place][action] for action in DRAWN[place]]
        pairs = zip(OLD[place], SKILLS[place], strict=True)
        weights = [old * math.exp(skill / 2) for old, skill in pairs]
        for action, p, weight in zip(DRAWN[place], now, weights, strict=True):
            target = weight / sum(weights)
            total -= target * math.log(p / sum(now))
            # Policy less target, as a mean over two prefixes.
            moved[place, action] = (p / sum(now) - target) / 2
    assert loss.item() == pytest.approx(total / 2, rel=1e-5)
    assert torch.allclose(gradient.view(2, 3), moved, atol=1e-6)


def test_grpo_over_candidates():
    loss = RULES["GRPOToken"](clip=0.2, beta=0.1).term(candidates()).loss
    total = 0.0
    for place in range(2):
        for action, old, skill in zip(DRAWN[place], OLD[place], SKILLS[place], strict=True):
            ratio = P[place][action] / old
            clipped = min(max(ratio, 0.8), 1.2)
            divergence = 1 / ratio - 1 + math.log(ratio)
            total += -min(ratio * skill, clipped * skill) + 0.1 * divergence
    assert loss.item() == pytest.approx(total / 2, rel=1e-5)
