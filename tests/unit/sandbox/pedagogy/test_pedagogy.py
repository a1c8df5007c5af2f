"""The task in two views, chances of success by listing, and what teacher and student learn from."""

from itertools import product

import pytest
import torch

from hgrpo.sandbox import draws
from hgrpo.sandbox.pedagogy.evaluate import success
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.pedagogy.train import Trainer
from hgrpo.sandbox.policies import taken

SMALL = {"seeds": (0, 1), "content_vocab_size": 3, "d_model": 16, "batch_size": 16}
SMALL |= {"group_size": 4, "num_steps": 4, "eval_every": 2}


def trainer(**changes) -> Trainer:
    return Trainer(PedagogySettings(**SMALL | changes))


def test_the_teacher_sees_the_answer_and_the_student_does_not():
    questions = trainer(answer_len=2).task.questions(torch.tensor([[[2, 1], [0, 2]]]))
    # x0 + x1 and x0 + 2 x1 modulo 3; QUERY is 3 and HINT is 4.
    assert questions.answers.tolist() == [[[0, 1], [2, 1]]]
    assert questions.prompts["student"].tolist() == [[[2, 1, 3], [0, 2, 3]]]
    assert questions.prompts["teacher"].tolist() == [[[2, 1, 4, 0, 1, 3], [0, 2, 4, 2, 1, 3]]]


def test_all_last_tokens_must_be_right_and_the_others_are_free():
    task = trainer(answer_len=2).task
    actions = torch.tensor([[3, 0, 1], [4, 0, 1], [0, 0, 2], [1, 1, 0]])
    assert task.rewards(actions, torch.tensor([0, 1])).tolist() == [1, 1, 0, 0]
    everything = task.everything
    assert len(set(map(tuple, everything.prompts["student"][0].tolist()))) == 9


@pytest.mark.parametrize("answer_len", [1, 2, 3])
def test_the_chance_of_success_is_that_of_all_listed_rollouts(answer_len):
    run = trainer(answer_len=answer_len)
    weights, questions = run.learners["student"].weights, run.task.everything
    prompts = questions.prompts["teacher"].expand(2, -1, -1)
    answers = questions.answers.expand(2, -1, -1)
    outputs = torch.tensor(list(product(range(5), repeat=3)))
    actions = outputs[None, None, :, None].expand(2, 9, -1, -1, -1)
    chances = taken(run.policy.table(weights, prompts, actions), actions).sum((-1, -2)).exp()
    right = run.task.rewards(outputs, answers.unsqueeze(2))
    exact = success(run.policy, weights, prompts, answers)
    assert torch.allclose(exact, (chances * right).sum(-1), atol=1e-6)
    uniform = draws.uniform((0, 1), "evaluation", ("test",), (9, 800, 1, 3))
    drawn = success(run.policy, weights, prompts, answers, uniform)
    assert torch.allclose(drawn, exact, atol=0.03)
    assert answer_len < 3 or torch.allclose(drawn, exact, atol=1e-6)


def test_student_and_teacher_start_as_one_policy_and_arms_share_it():
    arms = [trainer(method=name) for name in ("PedagogicalRL", "TeacherRL", "StudentGRPO")]
    first = arms[0].learners["student"].weights
    assert first.equal(arms[0].learners["teacher"].weights)
    assert all(arm.learners["student"].weights.equal(first) for arm in arms)
    assert list(arms[2].learners) == ["student"]
    before = first.clone()
    arms[0].take_step()
    student, teacher = (arms[0].learners[view].weights for view in ("student", "teacher"))
    assert not student.equal(before) and not teacher.equal(before) and not student.equal(teacher)


def test_arms_explore_the_same_inputs(monkeypatch):
    explored = {}
    for name in ("PedagogicalRL", "TeacherRL", "StudentGRPO"):
        run, drawn = trainer(method=name), []
        sample = run.sample
        monkeypatch.setattr(run, "sample", lambda *of, s=sample, d=drawn: d.append(s(*of)) or d[-1])
        run.take_step(), run.take_step()
        # Rollouts that are imitated come in no groups.
        explored[name] = [b.inputs["student"] for b in drawn if b.group_size == SMALL["group_size"]]
    first, *others = explored.values()
    assert len(first) == 2 and not first[0].equal(first[1])
    for inputs in others:
        assert all(mine.equal(theirs) for mine, theirs in zip(first, inputs, strict=True))


def test_a_lesson_is_paid_by_its_form():
    paid = {}
    for form in ("product", "additive"):
        run = trainer(rule={"reward": form})
        batch = run.sample("teacher", ("test",), 4, 4)
        lesson, metrics = run.lesson(batch)
        paid[form] = lesson.rewards
        assert metrics["max_surprise_gap"][0] >= metrics["spike_penalty"][0]
        assert metrics["spike_penalty"][0] >= metrics["avg_surprise_gap"][0] > 0
    failed = batch.clean == 0
    assert (paid["product"][failed] == 0).all() and (paid["product"][~failed] > 0).all()
    assert (paid["additive"][failed] <= 0).all() and (paid["additive"][failed] < 0).any()


def test_teacher_rl_is_the_lesson_without_product_spike_and_gate():
    plain = {"reward": "additive", "penalty": "surprisal", "imitation": "plain"}
    one, other = trainer(method="TeacherRL"), trainer(rule=plain)
    rows = one.run(), other.run()
    assert one.learners["student"].weights.equal(other.learners["student"].weights)
    for mine, theirs in zip(*map(texts, rows), strict=True):
        assert mine | {"method": ""} == {name: theirs[name] for name in mine} | {"method": ""}
    gated = trainer(rule=plain | {"imitation": "gated"})
    gated.run()
    assert not gated.learners["student"].weights.equal(one.learners["student"].weights)


def texts(rows):
    return [{name: repr(value) for name, value in row.items()} for row in rows]


def test_only_right_rollouts_are_imitated_if_so_asked():
    run = trainer(rule={"imitated": "correct"})
    batch = run.sample("teacher", ("test",), 16, 1)
    learner = run.learners["student"]

    def gradient(of):
        weights = learner.weights.clone().requires_grad_()
        term = run.rule.imitate(run.see(of, "student", weights))
        return torch.autograd.grad(term.loss.sum(), weights)[0]

    right = batch.clean.flatten().bool()
    assert right.any() and not right.all()
    imitated = gradient(batch)
    run.rule = run.rule.model_copy(update={"imitated": "all"})
    assert torch.allclose(imitated, gradient(batch.restricted(batch.clean)), atol=1e-7)
    assert not torch.allclose(imitated, gradient(batch), atol=1e-4)


def test_predicted_mixed_groups_come_about():
    run = trainer(batch_size=400, seeds=(0,), content_vocab_size=5)
    columns = run.examiner.examine(run.learners["student"].weights, "student", 0)
    batches = [run.sample("student", ("test", part), 100, 4) for part in range(10)]
    mixed = torch.cat([b.clean.amax(-1) > b.clean.amin(-1) for b in batches], 1).float().mean()
    assert columns["predicted_mixed_rate"].item() == pytest.approx(mixed.item(), abs=0.06)


def test_longer_answers_start_cold():
    rates = []
    for answer_len in (1, 2, 3):
        run = trainer(answer_len=answer_len, content_vocab_size=5, group_size=8)
        columns = run.examiner.examine(run.learners["student"].weights, "student", 0)
        rates.append(columns["predicted_mixed_rate"].mean().item())
    assert rates[0] > 0.6 and rates[1] < 0.25 and rates[2] < 0.05


@pytest.mark.parametrize("method", ["PedagogicalRL", "StudentGRPO"])
def test_training_helps_the_student(method):
    changes = {"content_vocab_size": 2, "completion_len": 2, "group_size": 8, "batch_size": 48}
    changes |= {"num_steps": 40, "eval_every": 40, "student_lr": 1e-2}
    alone = method == "StudentGRPO"
    changes |= {} if alone else {"teacher_lr": 1e-2}
    rows = trainer(method=method, **changes).run()
    for first, last in zip(rows[:2], rows[2:], strict=True):
        assert last["sampled_reward"] > first["sampled_reward"] + 0.2
    assert rows[-1]["rollouts"] == (1 if alone else 2) * 40 * 48
    assert rows[-1]["verifier_calls"] == 40 * 48 and rows[-1]["tokens"] == 2 * rows[-1]["rollouts"]
