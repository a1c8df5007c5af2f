"""Nets with an axis of seeds: against PyTorch's layers, a cache, and single seeds."""

import pytest
import torch
from torch import nn

from hgrpo.sandbox import draws
from hgrpo.sandbox.every import Tree
from hgrpo.sandbox.nets.layout import MLP, unpack
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.policies import BanditPolicy, SequencePolicy, taken

SEEDS = (3, 5)
NET = Transformer(vocabulary=4, length=9, width=16, heads=2, layers=2)
POLICY = SequencePolicy(NET, horizon=4)


def prompts(count=3, length=5):
    return draws.integers(SEEDS, "data", (0,), (count, length), 4)


def weights_of(net):
    """Weights at which no norm and no bias is as it starts, so that leaving one out shows."""
    first = net.init(SEEDS)
    return first + 0.3 * torch.randn(first.shape, generator=torch.Generator().manual_seed(0))


def pytorch_transformer(tensors, seed):
    """The same net out of PyTorch's layers, with the weights of one seed."""
    layer = nn.TransformerEncoderLayer(16, 2, 64, 0.0, batch_first=True, norm_first=True)
    net = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False).eval()
    names = {
        "attend": "norm1",
        "feed": "norm2",
        "in": "self_attn.in_proj",
        "out": "self_attn.out_proj",
        "wide": "linear1",
        "narrow": "linear2",
    }
    state = {}
    for name, values in tensors.items():
        value = values[seed]
        layer, _, rest = name.partition(".")
        if layer in ("0", "1"):
            part, kind = rest.split(".")
            joint = "_" if part == "in" else "."
            end = {"scale": "weight", "shift": "bias", "matrix": "weight", "bias": "bias"}[kind]
            key = f"layers.{layer}.{names[part]}{joint}{end}"
            state[key] = value.T if kind == "matrix" else value
        elif layer == "last":
            state[f"norm.{'weight' if rest == 'scale' else 'bias'}"] = value
    net.load_state_dict(state)
    return net


def test_the_transformer_is_pytorchs():
    weights, tokens = weights_of(NET), prompts()
    tensors = unpack(NET.parts, weights)
    for seed in range(2):
        net = pytorch_transformer(tensors, seed)
        x = tensors["tokens"][seed][tokens[seed]] * 4 + tensors["positions"][seed][:5]
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        expected = net(x, mask=mask, is_causal=True) @ tensors["head.matrix"][seed]
        logits = NET.logits(weights, tokens)[seed]
        assert torch.allclose(logits, expected, atol=1e-5)


def test_the_mlp_by_hand():
    net = MLP(features=3, hidden=5, outputs=2)
    weights, x = net.init(SEEDS), torch.randn(2, 7, 3)
    tensors = {name: values[1] for name, values in unpack(net.parts, weights).items()}
    hidden = (x[1] @ tensors["first.matrix"] + tensors["first.bias"]).relu()
    hidden = (hidden @ tensors["second.matrix"] + tensors["second.bias"]).relu()
    expected = hidden @ tensors["head.matrix"] + tensors["head.bias"]
    assert torch.allclose(net.logits(weights, x)[1], expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 1, 1, 4), (3, 2, 2, 4)])
def test_sampling_with_a_cache_equals_encoding_anew(shape):
    weights = weights_of(NET)
    uniform = draws.uniform(SEEDS, "action", (0,), shape)
    sampled = POLICY.sample(weights, prompts(), uniform)
    again = POLICY.table(weights, prompts(), sampled.actions)
    assert torch.allclose(sampled.table, again, atol=1e-5)
    assert sampled.actions.equal(draws.pick(again, uniform))
    assert torch.allclose(sampled.logprobs, taken(again, sampled.actions), atol=1e-5)
    # Both begin with the prompt alone, so whole sequences in one pass are the judge.
    outputs = sampled.actions.flatten(2, 3)
    whole = torch.cat([prompts().unsqueeze(2).expand(-1, -1, outputs.shape[2], -1), outputs], -1)
    logits = NET.logits(weights, whole[..., :-1].flatten(1, 2))[..., -4:, :]
    expected = logits.log_softmax(-1).view_as(again)
    assert torch.allclose(again, expected, atol=1e-5)


@pytest.mark.parametrize(("vocabulary", "horizon"), [(3, 4), (4, 3), (5, 2), (5, 1)])
def test_a_tree_of_outputs_scores_each_as_if_it_were_alone(vocabulary, horizon):
    net = Transformer(vocabulary, 5 + horizon, width=16)
    policy = SequencePolicy(net, horizon)
    weights = weights_of(net).double().requires_grad_()
    prompts_of_seeds = draws.integers(SEEDS, "data", (0,), (3, 5), vocabulary)
    actions, table = policy.listed(weights, prompts_of_seeds)
    assert len(actions[0, 0].unique(dim=0)) == actions.shape[2] == vocabulary**horizon
    alone = policy.table(weights, prompts_of_seeds, actions)
    assert torch.allclose(table, alone, atol=1e-12)
    gradient, expected = (
        torch.autograd.grad(taken(each, actions).sin().sum(), weights)[0] for each in (table, alone)
    )
    assert torch.allclose(gradient, expected, atol=1e-9)


def test_the_tree_of_three_tokens_by_hand():
    """Beginnings of the outputs 000, 001, 010, ..., 111: 0, 1, 00, 01, 10, 11."""
    tree = Tree.of(2, 3)
    assert tree.tokens.tolist() == [0, 1, 0, 1, 0, 1]
    assert tree.depths.tolist() == [0, 0, 1, 1, 1, 1]
    seen = [[0], [1], [0, 2], [0, 3], [1, 4], [1, 5]]
    assert [(~row).nonzero().flatten().tolist() for row in tree.hidden] == seen
    nodes = [[0, 1, 3], [0, 1, 4], [0, 2, 5], [0, 2, 6]]
    assert tree.paths.tolist() == [path for path in nodes for _ in range(2)]


def test_the_greedy_output_is_the_likeliest_token_by_token():
    weights = NET.init(SEEDS)
    done = POLICY.greedy(weights, prompts())
    assert done.actions.shape == (2, 3, 1, 1, 4)
    assert done.actions.equal(POLICY.table(weights, prompts(), done.actions).argmax(-1))


def test_a_bandit_samples_from_its_table():
    policy = BanditPolicy(MLP(3, 5, 4))
    weights, x = policy.init(SEEDS), torch.randn(2, 6, 3)
    sampled = policy.sample(weights, x, torch.rand(2, 6, 2, 1, 1))
    assert sampled.actions.shape == (2, 6, 2, 1, 1)
    assert sampled.table.exp().sum(-1).allclose(torch.ones(2, 6, 2, 1, 1))
    assert policy.greedy(weights, x).actions.equal(sampled.table.argmax(-1)[:, :, :1])
    actions, table = policy.listed(weights, x)
    assert actions[1, 5].flatten().tolist() == [0, 1, 2, 3]
    assert table.equal(policy.table(weights, x, actions))


def test_a_seed_is_the_same_in_any_company():
    both, alone = NET.init(SEEDS), NET.init((5,))
    assert both[1].equal(alone[0]) and not both[0].equal(both[1])
    tokens = prompts()
    assert torch.allclose(NET.logits(both, tokens)[1:], NET.logits(alone, tokens[1:]), atol=1e-5)
    assert not NET.init((5,), "teacher").equal(alone)


def test_repeated_rows_give_the_gradient_of_every_sample():
    weights, tokens = NET.init((5,)), prompts()[1:]
    rows = weights.repeat(3, 1).requires_grad_()
    one_each = NET.logits(rows, tokens.transpose(0, 1))
    (each,) = torch.autograd.grad(one_each.square().sum(), rows)
    whole = weights.clone().requires_grad_()
    (total,) = torch.autograd.grad(NET.logits(whole, tokens).square().sum(), whole)
    assert torch.allclose(each.sum(0), total[0], rtol=1e-4, atol=1e-3)


def test_pick_inverts_the_distribution():
    logprobs = torch.tensor([0.5, 0.25, 0.25]).log()
    uniform = torch.tensor([0.0, 0.49, 0.5, 0.74, 0.75, 1 - 2**-24])
    assert draws.pick(logprobs, uniform).tolist() == [0, 0, 1, 1, 2, 2]
    # A probability of 0 is never picked, also at the edge.
    assert draws.pick(torch.tensor([0.0, 1.0]).log(), torch.zeros(1)).tolist() == [1]


def test_draws_depend_on_names_alone():
    whole = draws.uniform((1, 2), "data", (0,), (4,))
    assert draws.uniform((2,), "data", (0,), (2,)).equal(whole[1:, :2])
    others = [("action", (0,)), ("data", (1,))]
    assert not any(draws.uniform((1, 2), *name, (4,)).equal(whole) for name in others)
    assert set(draws.integers((1,), "data", (0,), (500,), 3).flatten().tolist()) == {0, 1, 2}


def test_blocks_start_alike_and_learn_apart():
    weights = NET.init(SEEDS)
    tensors = unpack(NET.parts, weights)
    for name in ("in.matrix", "wide.bias", "narrow.matrix"):
        assert tensors[f"0.{name}"].equal(tensors[f"1.{name}"])
        assert not tensors[f"0.{name}"][0].equal(tensors[f"0.{name}"][1])
    leaf = weights.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(NET.logits(leaf, prompts()).square().sum(), leaf)
    moved = unpack(NET.parts, gradient)
    assert not moved["0.in.matrix"].allclose(moved["1.in.matrix"])
