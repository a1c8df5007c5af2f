"""Settings of a run of rl: task, rule, sampling and evaluation.

Settings have the same names as the flags of the original sandbox.
"""

from typing import Literal

from pydantic import Field

from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Need
from hgrpo.sandbox.run_settings import RunSettings, Seeds, TransformerSettings, unread
from hgrpo.sandbox.tasks import CHAINS, REVERSALS

_RARE = ("false_positive_rare_token", "false_positive_sep")
RULES = kinds.of_piece("rl")
# If there are more action sequences than this, E[R | input] is not computed as an exact sum.
MOST_OUTPUTS = 729
BANDITS = ("mnist", "lm_bandit")
# Maximum deviation of rewards in [0, 1].
_LARGEST_DEVIATION = 0.5


def _replay(run: "RlSettings") -> bool:
    return run.replay_capacity > 0


NEEDS: dict[str, Need["RlSettings"]] = {
    "groups": Need("groups (group_size above 1)", lambda run: run.group_size > 1),
    "no_replay": Need(
        "fresh groups (replay_capacity 0), because replayed groups are from an older policy",
        lambda run: not _replay(run),
    ),
    "sequences": Need("a task with sequences, not a bandit", lambda run: run.task not in BANDITS),
    "bandit": Need("a bandit (task mnist or lm_bandit)", lambda run: run.task in BANDITS),
    "digits": Need("task mnist", lambda run: run.task == "mnist"),
    "token_rewards": Need(
        "the fractional reward of token_reversal or masked_reversal (binary_reward false)",
        lambda run: run.task in REVERSALS and not run.binary_reward,
    ),
    "right_or_wrong": Need(
        "a reward that is 0 or 1 (a bandit, or a reversal with binary_reward true)",
        lambda run: run.task in BANDITS or (run.task in REVERSALS and run.binary_reward),
    ),
    "clean": Need("rewards without noise (reward_noise 0)", lambda run: run.reward_noise == 0),
    "on_policy": Need(
        "fresh batches (delay 0 and replay_capacity 0)",
        lambda run: run.delay == 0 and not _replay(run),
    ),
    "one_epoch": Need("one update per batch (inner_epochs 1)", lambda run: run.inner_epochs == 1),
    "no_diagnostics": Need("diagnostics false", lambda run: not run.diagnostics),
    "no_kl": Need("kl_weight 0", lambda run: run.kl_weight == 0),
    "replay": Need("a replay buffer (replay_capacity above 0)", _replay),
    "ages": Need(
        "batches of age above 0 (replay_capacity or delay above 0)",
        lambda run: _replay(run) or run.delay > 0,
    ),
    "two_survivors": Need(
        "at least two samples that pass the screen on average, if entropy_diagnostics is true "
        "(kondo_keep times batch_size of at least 2)",
        lambda run: not run.entropy_diagnostics or run.rule.keep * run.batch_size >= 2,
    ),
    "off_policy": Need(
        "ratios other than 1 (inner_epochs above 1, or delay or replay_capacity above 0)",
        lambda run: run.inner_epochs > 1 or 0 < run.delay < run.num_steps or _replay(run),
        degenerate=True,
    ),
    "ages_vary": Need(
        "batches of different ages (replay_capacity above the larger of delay and "
        "replay_min_age, plus 1)",
        lambda run: run.replay_capacity > max(run.delay, run.replay_min_age) + 1,
        degenerate=True,
    ),
    "filter_acts": Need(
        "an uncertainty_threshold below 0.5, the maximum standard deviation of rewards in [0, 1]",
        lambda run: run.rule.threshold < _LARGEST_DEVIATION,
        degenerate=True,
    ),
    "filter_compares": Need(
        "groups (group_size above 1 with grouped true); otherwise, the filter keeps or removes the "
        "whole batch",
        lambda run: run.grouped and run.group_size > 1,
        degenerate=True,
    ),
}


class RlSettings(RunSettings, TransformerSettings):
    """Settings of one arm of rl, for a set of seeds."""

    RULES = RULES
    NEEDS = NEEDS

    task: Literal[BANDITS + REVERSALS + CHAINS] = Field("mnist", description="the task")
    method: str = Field("DG", description="name of the update rule")
    delay: int = Field(
        0, ge=0, description="number of steps between sampling a batch and training on it"
    )
    num_steps: int = Field(1000, gt=0, description="number of sampled batches")
    batch_size: int = Field(100, gt=0, description="rollouts per batch")
    lr: float = Field(1e-3, gt=0, description="learning rate of Adam")
    seeds: Seeds = Field((0, 1, 2, 3, 4), description="seeds, which are trained in parallel")
    baseline: Literal["zero", "constant", "expected", "collision", "group", "exact"] = Field(
        "expected",
        description="baseline of REINFORCE, DG and their variants. zero: 0; constant: 0.5; "
        "expected: E[R | input] if the task has a closed form, else as collision; collision: the "
        "sum of squared probabilities of the current policy, per token; group: the mean of the "
        "other rollouts in the group or, without groups, in the batch; exact: E[R | input], summed "
        "over all outputs if necessary",
    )
    diagnostics: bool = Field(
        False, description="log comparisons of the gradient with the oracle's gradient"
    )
    entropy_diagnostics: bool = Field(False, description="log how updates change the entropy")
    hidden: int = Field(50, gt=0, description="units per hidden layer of the bandit's net")
    replay_capacity: int = Field(
        0, ge=0, description="number of batches in the replay buffer; 0: no replay"
    )
    replay_priority: Literal[
        "uniform", "reward", "advantage", "surprisal", "delight", "fresh_delight"
    ] = Field("fresh_delight", description="replay priority of batches")
    replay_age_decay: float = Field(
        0.02, ge=0, description="fresh_delight: weight exp(-decay a) for a batch of age a"
    )
    replay_min_age: int = Field(0, ge=0, description="minimum age of replayed batches")
    replay_start: int = Field(0, ge=0, description="first step with replay")
    reward_noise: float = Field(0.0, ge=0, le=1, description="probability that a reward is noisy")
    reward_noise_mode: Literal[
        (
            "none",
            "label_flip",
            "random_reward",
            "false_positive_action0",
            "spurious_feature",
            *_RARE,
        )
    ] = Field("none", description="how noise changes a reward")
    group_size: int = Field(4, gt=0, description="rollouts per group, or candidates per prefix")
    grouped: bool = Field(
        False, description="sample groups also for rules that do not compare rollouts"
    )
    vocab_size: int = Field(2, gt=0, description="number of input tokens of the sequence tasks")
    seq_len: int = Field(10, gt=0, description="length of inputs and outputs")
    score_len: int = Field(5, description="masked_reversal: number of rewarded last positions")
    binary_reward: bool = Field(
        False, description="reversals: reward 1 if the whole output is right, else 0"
    )
    data: str | None = Field(
        None,
        description="mnist: an .npz with x_train, y_train, x_test, y_test; null: scikit-learn's "
        "digits. lm_bandit: a text; null: synthetic sentences",
    )
    model_name: str = Field("distilgpt2", description="lm_bandit: the language model")
    context_len: int = Field(128, gt=0, description="lm_bandit: context length in tokens")
    kl_weight: float = Field(
        0.0, ge=0, description="lm_bandit: weight of the KL penalty to the initial policy"
    )
    compat: Literal["none", "reference"] = Field(
        "none",
        description="reference: as in the original, groups of equal rewards are excluded from the "
        "mean, a closed-form E[R | input] replaces zero and constant baselines, and evaluations "
        "draw inputs",
    )

    @property
    def samples_groups(self) -> bool:
        """Whether a batch consists of groups with `group_size` rollouts of the same input."""
        return self.rule.grouped or (self.grouped and not self.rule.candidates)

    def unmet(self) -> list[str]:
        """Return one message per unmet requirement; raise ValueError if any is not allowed."""
        notes = super().unmet()
        if self.delay >= self.num_steps:
            line = f"delay {self.delay} has no effect, because num_steps is {self.num_steps}"
            if not self.allow_degenerate:
                raise ValueError(line)
            notes.append(line)
        return notes

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks that do not depend on the rule, as pairs (whether the check fails, message)."""
        noisy, mode = self.reward_noise > 0, self.reward_noise_mode
        horizon = 1 if self.task in BANDITS else self.seq_len
        listed = (self.vocab_size + 1) ** horizon <= MOST_OUTPUTS
        stated = self.task in BANDITS or (self.task == "token_reversal" and self.binary_reward)
        several = self.samples_groups and self.group_size > 1
        return (
            *super().refusals(),
            *self._unread(),
            (
                0 < self.replay_capacity <= max(self.delay, self.replay_min_age),
                f"replay_capacity {self.replay_capacity} must exceed the minimum age of replayed "
                f"batches, {max(self.delay, self.replay_min_age)}",
            ),
            (
                self.task in ("chain_arithmetic", "format_answer") and self.seq_len < 2,
                f"{self.task} requires seq_len of at least 2",
            ),
            (
                self.task == "masked_reversal" and not 1 <= self.score_len <= self.seq_len,
                f"score_len {self.score_len} must be from 1 to seq_len ({self.seq_len})",
            ),
            (noisy and mode == "none", "reward_noise requires a reward_noise_mode"),
            (
                not noisy and mode != "none",
                f"reward_noise_mode {mode} requires reward_noise above 0",
            ),
            (
                mode in _RARE and self.task in BANDITS,
                f"reward_noise_mode {mode} requires a task with sequences",
            ),
            (
                mode == "label_flip" and self.task in CHAINS,
                "label_flip replaces r by 1 - r, which is undefined for a reward of three steps",
            ),
            (
                self.baseline == "exact" and not (stated or listed),
                f"baseline exact sums over all outputs, but {self.task} has more than "
                f"{MOST_OUTPUTS}; reduce seq_len or vocab_size",
            ),
            (
                self.baseline == "group" and not several and self.batch_size < 2,
                "baseline group requires a batch of at least 2",
            ),
        )

    def _unread(self) -> list[tuple[bool, str]]:
        """Checks for settings that were changed but have no effect in this run."""
        sequences, text = self.task not in BANDITS, self.task == "lm_bandit"
        replays, rule = self.replay_capacity > 0, self.rule
        return [
            *unread(
                self,
                f"task {self.task}",
                hidden=self.task == "mnist",
                data=not sequences,
                score_len=self.task == "masked_reversal",
                binary_reward=self.task in REVERSALS,
                **dict.fromkeys(("model_name", "context_len", "kl_weight"), text),
                **dict.fromkeys(("vocab_size", "seq_len"), sequences),
                **dict.fromkeys(("d_model", "nhead", "num_layers"), sequences or text),
            ),
            *unread(
                self,
                self.method,
                baseline=not rule.grouped,
                group_size=self.samples_groups or rule.candidates,
                grouped=not (rule.grouped or rule.candidates),
            ),
            *unread(
                self,
                "a run without replay",
                replay_priority=replays,
                replay_min_age=replays,
                replay_start=replays,
                replay_age_decay=replays or "decay" in type(rule).model_fields,
            ),
        ]
