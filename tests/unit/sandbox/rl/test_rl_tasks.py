"""Tasks by hand: right answers, rewards, errors, and files of digits."""

import numpy as np
import pytest
import torch
from small_digits import write_digits
from small_runs import settings

from hgrpo.errors import UserError
from hgrpo.sandbox.every import every
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import make_task


def task(name, **changes):
    masked = {"score_len": 2} if name == "masked_reversal" else {}
    return make_task(RlSettings(task=name, **{"seq_len": 4, "vocab_size": 3} | masked | changes))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("token_reversal", [1, 0, 2, 2]),
        ("masked_reversal", [1, 0, 2, 2]),
        ("chain_reversal", [1, 0, 2, 2]),
        # 2 + 2 + 0 = 4, and 4 mod 3 = 1
        ("chain_arithmetic", [2, 2, 0, 1]),
        # the tag is token 4; 2 + 2 = 4, and 4 mod 3 = 1
        ("format_answer", [4, 1, 0, 1]),
    ],
)
def test_right_answers_by_hand(name, answer):
    one = task(name)
    questions = one.questions(torch.tensor([[[2, 2, 0, 1]]]))
    assert questions.inputs.tolist() == [[[2, 2, 0, 1, 3]]]
    assert questions.labels.tolist() == [[answer]]
    assert one.rewards(questions.labels, questions.labels).item() == 1.0
    assert one.errors(questions.labels, questions.labels)["test_error"].item() == 0.0
    assert one.actions == (5 if name == "format_answer" else 4)


ANSWER = [1, 0, 2, 2]


@pytest.mark.parametrize(
    ("name", "changes", "output", "reward", "errors"),
    [
        ("token_reversal", {}, [1, 0, 0, 0], 0.5, {"test_error": 0.5}),
        ("token_reversal", {"binary_reward": True}, [1, 0, 2, 0], 0, {"test_error": 1}),
        ("masked_reversal", {}, [3, 0, 2, 0], 0.5, {"test_error": 0.5, "test_error_unscored": 0.5}),
        (
            *("masked_reversal", {"binary_reward": True}, [3, 3, 2, 2], 1),
            {"test_error": 0, "test_error_unscored": 1},
        ),
        ("chain_reversal", {}, [1, 0, 0, 0], 1 / 3, {"test_error": 1, "chain_reward": 1 / 3}),
        ("chain_reversal", {}, [0, 0, 2, 2], 1 / 3, {"test_error": 1, "chain_reward": 1 / 3}),
        ("chain_arithmetic", {}, [1, 0, 2, 0], 1 / 3, {"test_error": 1, "chain_reward": 1 / 3}),
        ("chain_arithmetic", {}, [0, 0, 2, 2], 1 / 3, {"test_error": 1, "chain_reward": 1 / 3}),
        ("format_answer", {}, [1, 0, 0, 0], 2 / 3, {"test_error": 1, "chain_reward": 2 / 3}),
        ("format_answer", {}, [0, 3, 2, 2], 0, {"test_error": 1, "chain_reward": 0}),
    ],
)
def test_rewards_and_errors_by_hand(name, changes, output, reward, errors):
    one = task(name, **changes)
    pair = torch.tensor(output), torch.tensor(ANSWER)
    assert one.rewards(*pair).item() == pytest.approx(reward)
    columns = {key: value.item() for key, value in one.errors(*pair).items()}
    assert columns == pytest.approx(errors)


def test_every_lists_all_sequences_once():
    assert every(2, 2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert len({tuple(row) for row in every(3, 4).tolist()}) == 81


def test_many_inputs_are_drawn_once_and_few_are_listed():
    questions, listed = task("token_reversal").examination()
    assert listed and questions.inputs.shape == (1, 81, 5)
    questions, listed = task("token_reversal", vocab_size=9, seq_len=10).examination()
    again, _ = task("token_reversal", vocab_size=9, seq_len=10).examination()
    assert (
        not listed
        and questions.inputs.shape == (1, 1000, 11)
        and questions.inputs.equal(again.inputs)
    )


def test_digits_from_an_npz(tmp_path):
    one = make_task(settings("LogGrowth", write_digits(tmp_path / "d.npz")))
    questions = one.draw((0, 1), 3, 8)
    assert questions.inputs.shape == (2, 8, 64) and questions.labels.shape == (2, 8, 1)
    assert questions.inputs.amax() <= 1 and questions.inputs.amin() >= 0
    assert one.examination()[0].labels.shape == (1, 100, 1)
    assert one.rewards(questions.labels, questions.labels).eq(1).all()
    wrong = (questions.labels + 1) % 10
    assert one.errors(wrong, questions.labels)["test_error"].eq(1).all()
    weights = one.policy().init((0, 1))
    logprobs = one.policy().table(weights, questions.inputs, questions.labels[:, :, None, None])
    stated = one.stated(one.policy(), weights, questions)
    expected = logprobs.exp()[:, :, 0, 0, 0].gather(-1, questions.labels).squeeze(-1)
    assert torch.allclose(stated, expected)


ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def cut_off(path):
    """An .npz without its end."""
    write_digits(path)
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda path: None, "file not found"),
        (
            lambda path: path.write_text("no", encoding="utf-8"),
            "expected MNIST's format .the file is not an .npz file",
        ),
        (lambda path: np.savez(path.open("wb"), x_train=np.zeros((1, 4))), "y_train"),
        (
            lambda path: np.savez(
                path.open("wb"),
                **{key: np.full((2, 4)[: 1 + key.startswith("x")], 12) for key in ARRAYS},
            ),
            "labels from 0 to 9",
        ),
        (cut_off, "expected MNIST's format"),
    ],
)
def test_a_file_that_is_not_mnist_is_named(make, text, tmp_path):
    make(tmp_path / "d.npz")
    with pytest.raises(UserError, match=text) as caught:
        make_task(RlSettings(data=str(tmp_path / "d.npz")))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.extra("digits")
def test_scikit_learns_digits_are_split_and_scaled():
    task = make_task(RlSettings(task="mnist"))
    assert task.pictures.shape == (1437, 64) and task.test_pictures.shape == (360, 64)
    assert task.pictures.max() == 1.0 and task.pictures.min() == 0.0
    # The first picture of the file shows a 0 and is for the test; the second shows a 1.
    assert task.test_digits[0] == 0 and task.digits[0] == 1
