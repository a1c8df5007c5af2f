"""A run of opd: phases, and what an exact and a truncated loss teach."""

import math

from opd_runs import settings

from hgrpo.sandbox.opd.train import Trainer


def test_a_phase_begins_with_an_evaluation():
    warm = ({"label": "warm"}, {"method": "OPDTopKReverseKL", "rule": {"k": 2}, "start": 3})
    rows = Trainer(settings(phases=warm, num_steps=5)).run()[::2]
    assert [(row["step"], row["phase"]) for row in rows] == [
        *((0, "warm"), (2, "warm")),
        *((step, "OPDTopKReverseKL") for step in (3, 4, 5)),
    ]
    assert "opd_reverse_kl" in rows[1] and "opd_topk_reverse_kl" in rows[2]
    assert not {"loss", "diag_reverse_kl"} & set(rows[-1])


def test_the_exact_loss_teaches_a_short_task_and_a_truncated_one_leaks():
    short = {"num_steps": 40, "batch_size": 64, "seq_len": 2, "eval_every": 39, "lr": 1e-2}
    exact = Trainer(settings(**short)).run()
    assert max(row["test_error"] for row in exact[-2:]) <= 0.1
    start, near_end = exact[0], exact[2]
    assert near_end["diag_reverse_kl"] < 0.1 * start["diag_reverse_kl"]
    one = {"k": 1, "support": "student"}
    leaks = Trainer(settings("OPDTopKReverseKL", one, **short)).run()
    # Every token ends near 1/4 of the probability: ln 4 nats.
    assert min(row["policy_entropy"] for row in leaks[-2:]) > 0.95 * math.log(4)
    assert max(row["sampled_reward"] for row in leaks[-2:]) < 0.5
