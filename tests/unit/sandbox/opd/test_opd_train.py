"""A run: seeds do not touch each other, evaluations touch nothing, shared steps leave no trace."""

import copy
import math

import pytest
from opd_runs import settings

from hgrpo.errors import TrainingError
from hgrpo.sandbox.opd.experiments.train_all import train_all
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.train import Trainer

TOP_K = {"k": 2, "support": "intersection"}
WARM = ({"label": "warm"}, {"method": "OPDTopKReverseKL", "rule": TOP_K, "start": 3})
KINDS = [
    settings(task="soft_reversal"),
    settings("OPDTopKTail", TOP_K, task="format_answer"),
    settings("OPDPG", inner_epochs=2),
    settings(phases=WARM, num_steps=5),
]


def changed(run, **changes):
    return OpdSettings(**run.model_dump() | changes)


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.phases[-1].method)
def test_stacked_seeds_are_single_runs(run):
    together = Trainer(run)
    rows = together.run()
    for index, seed in enumerate(run.seeds):
        alone = Trainer(changed(run, seeds=(seed,)))
        own = alone.run()
        # Adam divides by the gradient's size, so rounding may move a small weight by more.
        apart = (together.weights[index] - alone.weights[0]).abs()
        assert apart.mean() < 1e-5 and apart.max() < 1e-2
        for theirs, mine in zip(rows[index :: len(run.seeds)], own, strict=True):
            assert [theirs.pop(name) for name in ("method", "phase", "task")] == [
                mine.pop(name) for name in ("method", "phase", "task")
            ]
            assert theirs == pytest.approx(mine, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.phases[-1].method)
def test_how_often_a_run_evaluates_changes_nothing(run):
    often, seldom = Trainer(changed(run, eval_every=1)), Trainer(changed(run, eval_every=100))
    often.run(), seldom.run()
    assert often.weights.equal(seldom.weights)


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.phases[-1].method)
def test_a_resumed_run_equals_one_that_was_not_interrupted(run):
    whole, half = Trainer(run), Trainer(run)
    for _ in range(2):
        half.take_step()
    state = copy.deepcopy(half.state())
    half.take_step()
    later = Trainer(run)
    later.load_state(state)
    assert later.run() == whole.run()
    assert later.weights.equal(whole.weights)


def test_runs_that_share_steps_log_what_they_would_alone():
    full = settings(num_steps=6, phases=({"label": "warm"},))
    runs = [
        full,
        *(
            changed(
                full,
                phases=({"label": "warm"}, {"method": "OPDTopKForwardKL", "start": start}),
            )
            for start in (2, 3)
        ),
        # Another label, another lr: nothing in common with the first.
        changed(full, phases=({"label": "other"}, {"method": "OPDPG", "start": 3})),
        changed(full, lr=0.01, phases=({"label": "warm"}, {"method": "OPDPG", "start": 3})),
    ]
    done = []
    assert train_all(runs, done.append) == [Trainer(run).run() for run in runs]
    assert sum(done) == 6 * len(runs)
    # Two runs begin where the first one was.
    assert [steps for steps in done if steps > 1] == [2, 3]


def test_a_phase_begins_with_an_evaluation():
    rows = Trainer(KINDS[-1]).run()[::2]
    assert [(row["step"], row["phase"]) for row in rows] == [
        *((0, "warm"), (2, "warm")),
        *((step, "OPDTopKReverseKL") for step in (3, 4, 5)),
    ]
    assert "opd_reverse_kl" in rows[1] and "opd_topk_reverse_kl" in rows[2]
    assert not {"loss", "diag_reverse_kl"} & set(rows[-1])


def test_the_log_has_the_originals_columns():
    common = {"step", "loss", "seed", "method", "task", "test_error", "entropy", "reward"} | {
        f"diag_{name}"
        for name in ("reverse_kl", "forward_kl", "sampled_reverse_kl", "teacher_entropy")
        + ("student_entropy", "entropy_gap", "top1_agreement", "overlap_at_2")
    }
    own = {
        "OPDReverseKL": {"opd_reverse_kl", "teacher_entropy", "student_entropy", "top1_agreement"},
        "OPDTopKReverseKL": {"opd_topk_reverse_kl", "student_topk_mass", "teacher_topk_mass"}
        | {"topk_support_size", "top1_agreement"},
        "OPDPG": {"sampled_reverse_kl", "opd_advantage_mean", "ratio_mean"},
    }
    for method, columns in own.items():
        row = Trainer(settings(method, num_steps=1)).run()[0]
        assert common | columns <= set(row)


def test_arms_share_first_weights_and_data():
    one, other = (Trainer(settings(name)) for name in ("OPDReverseKL", "OPDPG"))
    assert one.weights.equal(other.weights)
    first, second = (arm.task.sequences.draw((0, 1), 3, 4).inputs for arm in (one, other))
    assert first.equal(second)


def test_a_loss_that_is_not_finite_names_loss_seed_and_step():
    with pytest.raises(TrainingError, match="reversal, OPDReverseKL, step 1, seed 0"):
        Trainer(settings(lr=1e30)).run()


def test_the_exact_loss_teaches_a_short_task_and_a_truncated_one_leaks():
    short = {"num_steps": 100, "batch_size": 64, "seq_len": 2, "eval_every": 99, "lr": 3e-3}
    exact = Trainer(settings(**short)).run()
    assert max(row["test_error"] for row in exact[-2:]) <= 0.1
    start, near_end = exact[0], exact[2]
    assert near_end["diag_reverse_kl"] < 0.1 * start["diag_reverse_kl"]
    one = {"k": 1, "support": "student"}
    leaks = Trainer(settings("OPDTopKReverseKL", one, **short)).run()
    # Every token ends near 1/4 of the probability: ln 4 nats.
    assert min(row["policy_entropy"] for row in leaks[-2:]) > 0.95 * math.log(4)
    assert max(row["sampled_reward"] for row in leaks[-2:]) < 0.5
