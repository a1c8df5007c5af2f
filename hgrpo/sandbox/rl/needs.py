"""What a rule may need of a run, and how a run's settings say whether they give it.

Importing this module imports no torch.
"""

from typing import TYPE_CHECKING

from hgrpo.sandbox.rule import Need
from hgrpo.sandbox.tasks.names import REVERSALS

if TYPE_CHECKING:
    from hgrpo.sandbox.rl.settings import RlSettings

BANDITS = ("mnist", "lm_bandit")
# No rewards within [0, 1] deviate by more.
_LARGEST_DEVIATION = 0.5


def _replay(run: "RlSettings") -> bool:
    return run.replay_capacity > 0


def _ages_vary(run: "RlSettings") -> bool:
    return run.replay_capacity > max(run.delay, run.replay_min_age) + 1


def _threshold(run: "RlSettings") -> float:
    return run.rule["threshold"]


def _survivors(run: "RlSettings") -> float:
    return run.rule["keep"] * run.batch_size


NEEDS: dict[str, Need["RlSettings"]] = {
    "groups": Need("groups: group_size above 1", lambda run: run.group_size > 1),
    "no_replay": Need(
        "fresh groups: replay_capacity 0; the skills of a replayed group are those of an old "
        "policy",
        lambda run: not _replay(run),
    ),
    "sequences": Need("a task with sequences, not a bandit", lambda run: run.task not in BANDITS),
    "bandit": Need("a bandit: task mnist or lm_bandit", lambda run: run.task in BANDITS),
    "digits": Need("task mnist", lambda run: run.task == "mnist"),
    "token_rewards": Need(
        "the fractional reward of token_reversal or masked_reversal: binary_reward false",
        lambda run: run.task in REVERSALS and not run.binary_reward,
    ),
    "right_or_wrong": Need(
        "a reward that is 0 or 1: a bandit, or a reversal with binary_reward true",
        lambda run: run.task in BANDITS or (run.task in REVERSALS and run.binary_reward),
    ),
    "clean": Need("rewards without noise: reward_noise 0", lambda run: run.reward_noise == 0),
    "on_policy": Need(
        "fresh batches: delay 0 and replay_capacity 0",
        lambda run: run.delay == 0 and not _replay(run),
    ),
    "one_epoch": Need("one pass a batch: inner_epochs 1", lambda run: run.inner_epochs == 1),
    "no_diagnostics": Need("diagnostics false", lambda run: not run.diagnostics),
    "no_kl": Need("kl_weight 0", lambda run: run.kl_weight == 0),
    "replay": Need("a replay buffer: replay_capacity above 0", _replay),
    "ages": Need(
        "batches that age: replay_capacity or delay above 0",
        lambda run: _replay(run) or run.delay > 0,
    ),
    "two_survivors": Need(
        "a screen that, with entropy_diagnostics, lets two samples pass on average: kondo_keep "
        "times batch_size at least 2",
        lambda run: not run.entropy_diagnostics or _survivors(run) >= 2,
    ),
    "off_policy": Need(
        "ratios other than 1: inner_epochs above 1, delay or replay_capacity above 0",
        lambda run: run.inner_epochs > 1 or 0 < run.delay < run.num_steps or _replay(run),
        degenerate=True,
    ),
    "ages_vary": Need(
        "batches of different ages: replay_capacity above the larger of delay and replay_min_age, "
        "plus 1",
        _ages_vary,
        degenerate=True,
    ),
    "filter_acts": Need(
        "an uncertainty_threshold below 0.5, the largest deviation of rewards in [0, 1]",
        lambda run: _threshold(run) < _LARGEST_DEVIATION,
        degenerate=True,
    ),
    "filter_compares": Need(
        "a deviation of each group (group_size above 1 with grouped true); that of the whole "
        "batch switches all of it",
        lambda run: run.grouped and run.group_size > 1,
        degenerate=True,
    ),
}
