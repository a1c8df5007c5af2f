"""What a rule may need of a run. Importing this module imports no torch."""

from typing import TYPE_CHECKING

from hgrpo.sandbox.rule import Need

if TYPE_CHECKING:
    from hgrpo.sandbox.vpo.settings import VpoSettings

NEEDS: dict[str, Need["VpoSettings"]] = {
    "groups": Need("groups: group_size above 1", lambda run: run.group_size > 1),
    "one_answer": Need("sets of one answer: num_candidates 1", lambda run: run.num_candidates == 1),
    "several_answers": Need(
        "sets of several answers: num_candidates above 1", lambda run: run.num_candidates > 1
    ),
    "clip_acts": Need(
        "ratios other than 1: inner_epochs above 1; else the clip never acts",
        lambda run: run.inner_epochs > 1,
        degenerate=True,
    ),
}
