"""Output files of a finished round: policy, trainer state, trajectories, log and summary."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.atomic import write_json
from hgrpo.credit.base import ORDER_DEPENDENT
from hgrpo.learning.checkpoints import write_state
from hgrpo.learning.critic import save_critic
from hgrpo.learning.log_row import SIZES
from hgrpo.learning.round import Round
from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.policy.compatible import weights_digest
from hgrpo.policy.precision import dtype_name
from hgrpo.trajectories.log_row import all_play, in_summary
from hgrpo.trajectories.store import join_steps

# The summary contains the sums of these columns of the log. The log adds the prefix "n_" to the
# columns in `_TOTALS`.
_COUNTS = ("inadmissible", "overlong", "empty", "dead_groups", "truncated", "context_overflow")
_TOTALS = (
    *("groups", "trajectories", "turns", "action_tokens", "forward_tokens"),
    *("trained_groups", "trained_trajectories"),
)


def write_round(played: Round, config: Mapping, origin: Mapping, folder: Path) -> None:
    """Write the files of a finished round to `folder`.

    The log also contains the time and `config`, the stage's settings. The summary also contains
    `origin`, which identifies the round's initial models, settings and code.
    """
    learner, rows = played.learner, played.rows
    learner.policy.save_adapter(folder / "adapter")
    write_state(learner.state(), folder / "adapter" / TRAINER_STATE)
    save_critic(learner.critic, folder / CRITIC, origin["parents"]["base"])
    join_steps(played.checkpoints.folder, len(rows), folder)
    where = {"seed": played.id.seed, "round": played.id.index}
    finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    ended = learner.stop.ending()
    log = {"rows": rows, "ended": ended, "finished": finished, "config": {**config, **where}}
    write_json(folder / "train_log.json", log)
    summary = {
        "method": played.id.method.name,
        **where,
        **totals(rows),
        **in_summary(rows),
        "credit_caution": credit_caution(played),
        "ended": ended,
        "train_dtype": dtype_name(learner.autocast),
        "final_kl_coef": learner.kl_coefficient,
        "total_elapsed_s": sum(row["elapsed_s"] for row in rows),
        **origin,
        "policy": weights_digest(folder / "adapter"),
    }
    write_json(folder / "summary.json", summary)


def credit_caution(played: Round) -> str:
    """Warning about the round's turn credit, or "". Credit of an unfitted model is not checked."""
    method, rows = played.id.method, played.rows
    unfitted = method.credit.declared.fits and played.id.index == 1
    if unfitted or not rows:
        return method.credit_caution(flat=False)
    flat = all(row["flat_credit_groups"] == row["n_groups"] for row in rows)
    # Rows from older checkpoints may lack some entries.
    known = {name: [x for row in rows if (x := row.get(name)) is not None] for name in SIZES}
    sizes = {name: sum(values) / len(values) for name, values in known.items() if values}
    depends = any(row.get("order_dependent_credit") for row in rows)
    return method.credit_caution(flat, sizes) or (ORDER_DEPENDENT if depends else "")


def totals(rows: Sequence[Mapping]) -> dict:
    """Sums and means of log rows; a mean over no rows is None.

    `all_play` includes continuations, but sums with the prefix `total_` do not.
    """
    tenth = max(1, len(rows) // 10)
    norms = [row["grad_norm"] for row in rows if row["grad_norm"] is not None]

    def total(name: str) -> int:
        return sum(row[name] for row in rows)

    def mean(part: Sequence[Mapping]) -> float | None:
        return sum(row["mean_reward"] for row in part) / len(part) if part else None

    return {
        "n_steps": len(rows),
        **{f"total_{name}": total(f"n_{name}") for name in _TOTALS},
        "all_play": all_play(rows),
        "mean_reward_first_10pct": mean(rows[:tenth]),
        "mean_reward_last_10pct": mean(rows[-tenth:]),
        "mean_grad_norm": sum(norms) / len(norms) if norms else None,
        "counts": {name: total(name) for name in _COUNTS},
    }
