"""What a rule may need of a run. Importing this module imports no torch."""

from typing import TYPE_CHECKING

from hgrpo.sandbox.rule import Need

if TYPE_CHECKING:
    from hgrpo.sandbox.pedagogy.settings import PedagogySettings


def _compares(run: "PedagogySettings") -> bool:
    return run.rule["penalty"] != "spike" or run.completion_len > 1


NEEDS: dict[str, Need["PedagogySettings"]] = {
    "groups": Need("groups: group_size above 1", lambda run: run.group_size > 1),
    "teacher_steps": Need(
        "a teacher that learns: teacher_steps above 0", lambda run: run.teacher_steps > 0
    ),
    "penalty_counts": Need(
        "a learnability_lambda above 0; else every form of the reward is plain success",
        lambda run: run.rule["strength"] > 0,
        degenerate=True,
    ),
    "tokens_to_compare": Need(
        "a completion_len above 1; of one token the spike is the mean", _compares, degenerate=True
    ),
}
