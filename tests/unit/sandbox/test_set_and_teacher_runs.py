"""vpo and pedagogy: seeds do not touch each other, evaluations touch nothing, runs go on."""

import copy

import pytest

from hgrpo.errors import TrainingError
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.pedagogy.train import Trainer as PedagogyTrainer
from hgrpo.sandbox.vpo.settings import VpoSettings
from hgrpo.sandbox.vpo.train import Trainer as VpoTrainer

SHORT = {"seeds": (0, 1), "num_steps": 4, "eval_every": 2, "batch_size": 16, "group_size": 4}
TASK = {"content_vocab_size": 3, "d_model": 16, "inner_epochs": 2}
RUNS = [
    VpoSettings(**SHORT),
    VpoSettings(**SHORT, rule={"score": "exact", "credit": "marginal"}, compat="reference"),
    VpoSettings(**SHORT, method="MultiRLVR", rule={"credit": "marginal"}),
    VpoSettings(**SHORT, method="ScalarGRPO", num_candidates=1),
    PedagogySettings(**SHORT, **TASK),
    PedagogySettings(**SHORT, **TASK, method="TeacherRL", teacher_steps=2),
    PedagogySettings(**SHORT, **TASK, method="StudentGRPO", student_steps=2, compat="reference"),
    # Free tokens are drawn.
    PedagogySettings(**SHORT, d_model=16, content_vocab_size=11, rule={"imitation": "plain"}),
]
runs = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.method)


def trainer(run):
    return (VpoTrainer if isinstance(run, VpoSettings) else PedagogyTrainer)(run)


def weights(trained):
    if isinstance(trained, VpoTrainer):
        return [trained.weights]
    return [learner.weights for learner in trained.learners.values()]


def changed(run, **changes):
    return type(run)(**run.model_dump() | changes)


@runs
def test_stacked_seeds_are_single_runs(run):
    together = trainer(run)
    rows = together.run()
    for index, seed in enumerate(run.seeds):
        alone = trainer(changed(run, seeds=(seed,)))
        own = alone.run()
        for stacked, single in zip(weights(together), weights(alone), strict=True):
            # Adam divides by the gradient's size, so rounding may move a small weight by more.
            apart = (stacked[index] - single[0]).abs()
            assert apart.mean() < 1e-5 and apart.max() < 1e-2
        for theirs, mine in zip(rows[index :: len(run.seeds)], own, strict=True):
            assert theirs.pop("method") == mine.pop("method")
            assert theirs.pop("task") == mine.pop("task")
            assert theirs == pytest.approx(mine, rel=1e-3, abs=1e-3)


@runs
def test_how_often_a_run_evaluates_changes_nothing(run):
    often, seldom = trainer(changed(run, eval_every=1)), trainer(changed(run, eval_every=100))
    often.run(), seldom.run()
    assert all(map(lambda a, b: a.equal(b), weights(often), weights(seldom)))


@runs
def test_a_resumed_run_equals_one_that_was_not_interrupted(run):
    whole, half = trainer(run), trainer(run)
    for _ in range(2):
        half.take_step()
    state = copy.deepcopy(half.state())
    half.take_step()
    later = trainer(run)
    later.load_state(state)
    assert later.run() == whole.run()
    assert all(map(lambda a, b: a.equal(b), weights(later), weights(whole)))


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (VpoSettings(**SHORT, lr=1e38), "vpo, VPOGRPO, step [0-3], seed 0"),
        (
            PedagogySettings(**SHORT, **TASK, teacher_lr=1e38),
            "pedagogy, PedagogicalRL, teacher, step [0-3], seed 0",
        ),
    ],
)
def test_a_loss_that_is_not_finite_names_rule_step_and_seed(run, text):
    with pytest.raises(TrainingError, match=text):
        trainer(run).run()
