"""Runs of every piece: seeds do not touch each other, and evaluations touch nothing."""

import pytest

from hgrpo.errors import TrainingError
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.train import Trainer
from hgrpo.sandbox.studies.pieces import PIECES
from hgrpo.sandbox.vpo.settings import VpoSettings

SHORT = {"seeds": (0, 1), "num_steps": 4, "eval_every": 2, "batch_size": 16}
SHORT |= {"allow_degenerate": True}
RL = SHORT | {"task": "token_reversal", "seq_len": 3, "d_model": 16}
OPD = SHORT | {"vocab_size": 3, "seq_len": 3, "d_model": 16}
SETS = SHORT | {"group_size": 4}
LESSONS = SETS | {"content_vocab_size": 3, "d_model": 16, "inner_epochs": 2}
NOISE = {"reward_noise": 0.5, "reward_noise_mode": "random_reward", "baseline": "group"}
TOP_K = {"k": 2, "support": "intersection"}
WARM = ({"label": "warm"}, {"method": "OPDTopKReverseKL", "rule": TOP_K, "start": 3})
# One of each kind: ratios on several passes, screen, delay, replay, groups, candidates, noise;
# losses, phases; sets; teachers.
RUNS = [
    RlSettings(**RL, method="PG", inner_epochs=2),
    RlSettings(**RL, method="Kondo"),
    RlSettings(**RL, method="DG", delay=2),
    RlSettings(**RL, method="FreshDG", replay_capacity=3),
    RlSettings(**RL, method="TPO", inner_epochs=2),
    RlSettings(**RL, method="TPOToken"),
    RlSettings(**RL, method="DG", **NOISE),
    OpdSettings(**OPD, task="soft_reversal"),
    OpdSettings(**OPD, phases=WARM),
    OpdSettings(**OPD, phases=({"method": "OPDPG"},), inner_epochs=2),
    VpoSettings(**SETS),
    VpoSettings(**SETS, rule={"score": "exact", "credit": "marginal"}, compat="reference"),
    PedagogySettings(**LESSONS),
    PedagogySettings(**LESSONS, method="StudentGRPO", student_steps=2, compat="reference"),
    # Free tokens are drawn.
    PedagogySettings(**SETS, d_model=16, content_vocab_size=11, rule={"imitation": "plain"}),
]
NAMES = {RlSettings: "rl", OpdSettings: "opd", VpoSettings: "vpo", PedagogySettings: "pedagogy"}
runs = pytest.mark.parametrize("run", RUNS, ids=lambda run: NAMES[type(run)])


def trained(run, **changes):
    trainer = PIECES[NAMES[type(run)]].trainer(type(run)(**run.model_dump() | changes))
    trainer.run()
    return trainer


def weights(trainer):
    return [learner.weights for learner in trainer.learners.values()]


def agree(together, alone, index):
    """Check that a single run is the stacked run's seed at `index`."""
    for stacked, single in zip(weights(together), weights(alone), strict=True):
        # Adam divides by the gradient's size, so rounding may move a small weight by more.
        apart = (stacked[index] - single[0]).abs()
        assert apart.mean() < 1e-5 and apart.max() < 1e-2
    for theirs, mine in zip(together.rows[index::2], alone.rows, strict=True):
        texts = {name for name, value in mine.items() if isinstance(value, str)}
        assert {name: theirs[name] for name in texts} == {name: mine[name] for name in texts}
        numbers = [{name: row[name] for name in row.keys() - texts} for row in (theirs, mine)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-3)


@runs
def test_stacked_seeds_are_single_runs(run):
    together = trained(run)
    for index, seed in enumerate(run.seeds):
        agree(together, trained(run, seeds=(seed,)), index)


def test_seeds_that_stop_at_different_times_are_single_runs():
    settings = RL | {"method": "GRPO", "num_steps": 14, "eval_every": 4, "seq_len": 2}
    settings |= {"binary_reward": True}

    def stopping(*seeds):
        trainer = Trainer(RlSettings(**settings | {"seeds": seeds}))
        if 0 in seeds:
            # So sure of its outputs that no group differs; the head lies at the end of the weights.
            trainer.weights[seeds.index(0), -16 * trainer.task.actions :] *= 1e5
        trainer.run()
        return trainer

    together = stopping(0, 1)
    assert [row["stopped_at"] for row in together.rows[-2:]] == [9, -1]
    assert [row["updates"] for row in together.rows[-2:]] == [9, 14]
    for index in (0, 1):
        agree(together, stopping(index), index)


@runs
def test_how_often_a_run_evaluates_changes_nothing(run):
    often, seldom = trained(run, eval_every=1), trained(run, eval_every=100)
    assert all(map(lambda a, b: a.equal(b), weights(often), weights(seldom)))


@pytest.mark.parametrize(
    ("run", "changes", "text"),
    [
        (RUNS[2], {"lr": 1e30}, "token_reversal, DG, step 1, seed 0"),
        (RUNS[7], {"lr": 1e30}, "soft_reversal, OPDReverseKL, step 1, seed 0"),
        (RUNS[10], {"lr": 1e38}, "vpo, VPOGRPO, step [0-3], seed 0"),
        (RUNS[12], {"teacher_lr": 1e38}, "pedagogy, PedagogicalRL, teacher, step [0-3], seed 0"),
    ],
)
def test_a_loss_that_is_not_finite_names_rule_step_and_seed(run, changes, text):
    with pytest.raises(TrainingError, match=text):
        trained(run, **changes)
