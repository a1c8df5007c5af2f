"""Teachers, right answers and rewards by hand."""

import math

import pytest
import torch
from opd_runs import settings

from hgrpo.sandbox.opd.tasks import DistillTask, graded, smoothed


def test_the_smoothed_teacher_spreads_epsilon():
    chances = smoothed(5, 0.2).exp()
    assert torch.allclose(chances.diagonal(), torch.tensor(0.8))
    assert torch.allclose(chances[0, 1:], torch.tensor(0.05))


def test_the_graded_teacher_falls_with_the_distance_around_the_circle():
    near = math.exp(-1 / 0.5)
    weights = [near, 1.0 * 1.001, near * 1.002, math.exp(-2 / 0.5) * 1.003, 0.02]
    expected = [weight / sum(weights) for weight in weights]
    assert graded(4, 5, 0.5, 0.02)[1].exp().tolist() == pytest.approx(expected, rel=1e-5)
    table = graded(8, 9, 1.0, 0.02)[:8].exp()
    assert torch.allclose(table.sum(1), torch.ones(8))
    # The best token is the label, and no two content tokens are equal.
    assert table.argmax(1).tolist() == list(range(8))
    assert all(len(set(row.tolist())) == 9 for row in table)


@pytest.mark.parametrize(
    ("name", "changes", "count"),
    [
        ("reversal", {"vocab_size": 2, "seq_len": 10}, 1024),
        ("reversal", {"vocab_size": 8, "seq_len": 8}, 256),
        ("format_answer", {"vocab_size": 5, "seq_len": 3}, 125),
    ],
)
def test_an_evaluation_reads_every_input_where_they_are_few(name, changes, count):
    questions = DistillTask(settings(task=name, **changes)).examination((0, 1))
    assert questions.labels.shape[:2] == (2, count)
    assert len(questions.inputs[0].unique(dim=0)) == count


@pytest.mark.parametrize(
    ("name", "answer", "output", "reward", "error"),
    [
        ("reversal", [0, 2, 1], [0, 2, 0], 2 / 3, 1 / 3),
        ("soft_reversal", [0, 2, 1], [0, 3, 0], 1 / 3, 2 / 3),
        # The tag is token 4; (1 + 2) mod 3 is 0. Tag and sum are right, the copy is not.
        ("format_answer", [4, 0, 0], [4, 0, 1], 2 / 3, 1.0),
    ],
)
def test_answers_rewards_and_errors(name, answer, output, reward, error):
    task = DistillTask(settings(task=name))
    questions = task.sequences.questions(torch.tensor([[[1, 2, 0]]]))
    assert questions.labels[0, 0].tolist() == answer
    actions = torch.tensor(output)
    assert task.sequences.rewards(actions, questions.labels).item() == pytest.approx(reward)
    assert task.sequences.errors(actions, questions.labels)["test_error"].item() == pytest.approx(
        error
    )
    teacher = task.teacher(questions.labels)
    assert teacher.shape == (1, 1, 1, 1, 3, task.settings.actions)
    assert teacher.argmax(-1).flatten().tolist() == answer
