"""The bandit of a language model."""

import pytest
import torch
from small_runs import batch_of, gradient, settings
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from hgrpo.errors import UserError
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.diagnostics import gradient_columns
from hgrpo.sandbox.rl.tasks import char_model, lm
from hgrpo.sandbox.rl.tasks.lm import made_up_text
from hgrpo.sandbox.rl.tasks.task import make_task
from hgrpo.sandbox.rl.train import Trainer

LM = {"task": "lm_bandit", "model_name": "char", "context_len": 8}


@pytest.fixture(autouse=True, scope="module")
def briefly():
    """A short text and few steps; tests of one text share its first model."""
    trained = {}

    def shared(run, codes, vocabulary):
        if (len(codes), vocabulary) not in trained:
            trained[len(codes), vocabulary] = char_model.char_model(run, codes, vocabulary)
        return trained[len(codes), vocabulary]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lm, "_SENTENCES", 200)
        patch.setattr(char_model, "_STEPS", 80)
        patch.setattr(lm, "char_model", shared)
        yield


def test_contexts_are_followed_by_their_labels():
    task = make_task(settings("DG", **LM))
    text = made_up_text(200, "lm_bandit")
    known = sorted(set(text))
    questions, _ = task.examination()
    cut = len(text) - len(text) // 5
    spelled = "".join(
        known[code] for code in [*questions.inputs[0, 1].tolist(), questions.labels[0, 1, 0]]
    )
    assert spelled == text[cut + 8 : cut + 17]
    drawn = task.draw((0, 1), 3, 5)
    spelled = "".join(known[code] for code in [*drawn.inputs[1, 2].tolist(), drawn.labels[1, 2, 0]])
    assert spelled in text[:cut] and drawn.inputs.shape == (2, 5, 8)


def test_the_first_model_has_learned_and_all_seeds_start_from_it():
    trainer = Trainer(settings("DG", **LM))
    assert trainer.weights[0].equal(trainer.weights[1])
    columns = trainer.examiner.examine(trainer.weights, 0)
    assert columns["perplexity"][0] < trainer.task.actions / 2
    easy, medium, hard = (columns[f"error_{level}"][0] for level in ("easy", "medium", "hard"))
    assert easy <= medium <= hard
    questions, _ = trainer.task.examination()
    logp = trainer.policy.table(
        trainer.weights[:1], questions.inputs, questions.labels[:, :, None, None]
    )
    loss = -taken(logp, questions.labels[:, :, None, None]).mean()
    assert columns["perplexity"][0].item() == pytest.approx(loss.exp().item(), rel=1e-4)


def test_the_penalty_is_the_log_ratio_to_the_first_model():
    trainer = Trainer(settings("DG", kl_weight=0.5, lr=0.03, **LM))
    batch = batch_of(trainer)
    assert batch.rewards.equal(batch.clean) and set(batch.rewards.unique().tolist()) <= {0.0, 1.0}
    trainer.take_step()
    batch = batch_of(trainer, 1)
    before = trainer.policy.table(trainer.first, batch.inputs["policy"], batch.actions)
    ratio = (batch.behaviour - taken(before, batch.actions))[..., 0, 0]
    right = (batch.actions[..., 0, 0] == batch.labels).float()
    assert torch.allclose(batch.rewards, right - 0.5 * ratio, atol=1e-5)
    assert ratio.abs().max() > 0.01
    # Its expectation over all characters is the penalised success.
    table = trainer.policy.table(trainer.weights, batch.inputs["policy"], batch.actions)
    old, now = before[:, :, 0, 0, 0], table[:, :, 0, 0, 0].detach()
    expected = now.exp().gather(-1, batch.labels)[..., 0] - 0.5 * (now.exp() * (now - old)).sum(-1)
    assert torch.allclose(batch.expected, expected, atol=1e-5)


def moved(method, **changes):
    """A trainer with a penalty that has left its first policy, and a batch of it."""
    run = settings(method, kl_weight=0.5, lr=0.03, batch_size=32, **LM, **changes)
    trainer = Trainer(run)
    trainer.take_step()
    return trainer, batch_of(trainer, 1)


def test_groups_are_compared_by_rewards_with_their_penalty():
    for compat in ("none", "reference"):
        _, batch = moved("GRPO", compat=compat)
        right = (batch.actions[..., 0, 0] == batch.labels).float()
        same = right.amax(-1) == right.amin(-1)
        unlike = batch.rewards.amax(-1) - batch.rewards.amin(-1) > 1e-5
        assert (same & unlike).any()
        mixed = batch.extras["mixed"] > 0
        assert mixed.equal(unlike if compat == "none" else ~same)


def test_the_exact_gradient_is_that_of_the_penalised_reward():
    trainer, batch = moved("REINFORCE")
    weights = trainer.weights.clone().requires_grad_()
    tokens = batch.inputs["policy"], batch.labels[:, :, None, None]
    now, old = (
        trainer.policy.table(each, *tokens)[:, :, 0, 0, 0] for each in (weights, trainer.first)
    )
    apart = (now.exp() * (now - old)).sum(-1)
    success = now.exp().gather(-1, batch.labels)[..., 0]
    rules_gradient, cosines = gradient(trainer, batch), []
    for worth in (success - 0.5 * apart, success):
        loss = -worth.mean(1).sum()
        (exact,) = torch.autograd.grad(loss, weights, retain_graph=True)
        cosines.append(torch.cosine_similarity(rules_gradient, exact))
    cosine = gradient_columns(trainer, batch)["cos_method_exact"]
    assert torch.allclose(cosine, cosines[0], atol=1e-4)
    assert not torch.allclose(cosine, cosines[1], atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model_name": "no/such/model"}, "no/such/model: not found locally or on the hub"),
        ({"data": "no/such.txt"}, "no/such.txt: No such file"),
        ({"context_len": 10**6}, "too few for a test set with contexts of 1000000"),
    ],
)
def test_what_it_cannot_read_is_named(changes, text):
    with pytest.raises(UserError, match=text):
        make_task(settings("DG", **LM | changes))


def test_a_text_of_ones_own(tmp_path):
    (tmp_path / "text.txt").write_text("abcd" * 300, encoding="utf-8")
    trainer = Trainer(settings("DG", data=str(tmp_path / "text.txt"), **LM))
    assert trainer.task.actions == 4
    assert trainer.examiner.examine(trainer.weights, 0)["test_error"].tolist() == [0, 0]


@pytest.fixture
def gpt2(tmp_path):
    """A random GPT-2 of two layers whose tokens are characters."""
    known = sorted(set(made_up_text(200, "lm_bandit")))
    vocabulary = {character: index for index, character in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, known[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(known), **sizes)).eval()
    model.save_pretrained(tmp_path)
    return tmp_path, model


def test_a_model_of_hugging_face(gpt2):
    folder, model = gpt2
    trainer = Trainer(settings("DG", **LM | {"model_name": str(folder)}))
    questions = trainer.task.draw((0, 1), 0, 5)
    table = trainer.policy.table(trainer.weights, *_with_actions(questions))
    expected = model(questions.inputs[1]).logits[:, -1].log_softmax(-1)
    assert torch.allclose(table[1, :, 0, 0, 0], expected, atol=1e-5)
    tied = sum(parameter.numel() for parameter in model.parameters())
    assert trainer.weights.shape == (2, tied)
    rows = trainer.run()
    assert rows[-1]["kl_from_init"] > 0 and not trainer.weights[0].equal(trainer.weights[1])


def _with_actions(questions):
    return questions.inputs, questions.labels[:, :, None, None]
