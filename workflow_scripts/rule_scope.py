"""What each rule of the sandbox keeps of its sources and what it changes.

`sandbox_pages.py` writes these texts into docs/sandbox/rules.md.
"The original" is the sandbox whose commands `hgrpo.cli.sandbox` takes.
"""

from collections.abc import Mapping

SCOPE: Mapping[str, str] = {
    "CE": "Supervised learning on the right answers. It reads no reward.",
    "REINFORCE": "Kept whole. The run's `baseline` says what is subtracted.",
    "PG": (
        "Kept: truncated importance weights, one for each token. Left out: the ratios of earlier "
        "tokens, by which an exact weight is multiplied."
    ),
    "TrajPG": "Kept: the product of a trajectory's ratios. Changed: `cap` bounds the product.",
    "ASPO": (
        "Kept: inverse ratios for tokens of positive advantage, and bounds on the weights. "
        "Changed: advantages are rewards less the run's `baseline`; no groups are compared."
    ),
    "R2VPO": (
        "Kept: a penalty on the variance of the ratio in place of a clip. Changed: its weight is "
        "fixed; the paper adapts it by a primal-dual step."
    ),
    "DG": "Kept: the gate. An advantage is the rollout's reward less the run's `baseline`.",
    "Kondo": (
        "Kept: the screen by a price of delight. A rollout counts as much as its most delightful "
        "token, and chance decides near the price. Advantages in the screen are rewards less the "
        "collision probability, whatever the run's `baseline`."
    ),
    "DGToken": (
        "DG's gate on the original's own credit, which reads whether single tokens are right. "
        "Where the reward does not read a position, nothing is subtracted there."
    ),
    "ReplayDG": "DG on replayed batches, without importance weights, as in the original.",
    "FreshDG": "DG, with the original's own discount of old batches.",
    "DGEntropyGuard": (
        "DG, with the original's own brake. It reads the probability of the sampled token alone."
    ),
    "UncertaintyDG": (
        "DG, with the original's own doubt in the gate. The doubt is the deviation of rewards; no "
        "model estimates it."
    ),
    "FilteredDG": "DG, with the original's own filter by the deviation of rewards.",
    "RewardVarianceDG": (
        "DG, with the original's own shrinkage of advantages by the deviation of rewards."
    ),
    "LogGrowth": "The original's own, for tasks of one step.",
    "SelfDistillDG": (
        "DG's gate on the original's own credit and correction. The right answer stands in for a "
        "model that corrects."
    ),
    "SCOPELite": (
        "DG, with the original's own correction. The right answer stands in for a model that "
        "corrects."
    ),
    "GRPO": (
        "Kept: z-scores, the clip and the k3 penalty. Changed: the penalty pulls to the policy "
        "that sampled, and not to a fixed reference."
    ),
    "DrGRPO": (
        "Kept: centred rewards, and sums over tokens. All outputs have one length, so a bias by "
        "length cannot show. Changed: GRPO's penalty stays, as in the original."
    ),
    "DAPOLite": (
        "Kept: the wider upper clip and the mean over tokens, without a penalty. Left out: "
        "sampling until groups are mixed, and the reward for length; all outputs have one length."
    ),
    "DAPO": "Another name of DAPOLite.",
    "TPO": "Kept: the target over a group's rollouts, anchored at the policy that sampled them.",
    "TPONoAnchor": "TPO without its anchor. Changed: a group of equal rewards has no loss.",
    "GroupPG": "TPO's skills in a policy gradient, in place of its target.",
    "TPOFullAction": (
        "The original's own: TPO's target over all actions, of which a single one was sampled."
    ),
    "TPOToken": "The original's own: TPO's target over the candidates of each prefix.",
    "GRPOToken": (
        "The original's own: GRPO's terms over the candidates of each prefix, in place of rollouts."
    ),
    "TEMPO": (
        "Kept: z-scores plus the change of the prefix tree's values. The ratio is capped as in PG."
    ),
    "MaxRL": "Kept: centred rewards over the success rate. The ratio is capped as in PG.",
    "PMDMean": (
        "Kept: the regression on the log-ratio of a rollout, (tau log-ratio - (R - mean R))^2. "
        "The mean reward is exact where the task states it, "
        "else that of the batch."
    ),
    "OPDReverseKL": (
        "Kept: the reverse KL at prefixes that the student sampled, without a gradient through "
        "the sampling. Left out: prefixes from a fixed set."
    ),
    "OPDTopKReverseKL": (
        "The original's own: the terms of OPDReverseKL within a top-k set, which are not "
        "renormalised."
    ),
    "OPDTopKRenormalised": "A control of OPDTopKReverseKL that the original lacks.",
    "OPDTopKTail": "A control of OPDTopKReverseKL that the original lacks.",
    "OPDTopKForwardKL": "A control of OPDTopKReverseKL that the original lacks.",
    "OPDPG": (
        "Kept: log q - log p as the reward of a sampled token. Left out: credit for later tokens, "
        "sampling from the teacher, and the norm by length."
    ),
    "ScalarGRPO": "GRPO's surrogate without a penalty, on the answer's reward under gold weights.",
    "MultiRLVR": (
        "The original's own score, in GRPO's surrogate without a penalty. `credit: marginal` is a "
        "control that the original lacks."
    ),
    "VPOGRPO": (
        "The original's own score, in GRPO's surrogate without a penalty. `credit: marginal` and "
        "`score: exact` are controls that the original lacks."
    ),
    "PedagogicalRL": (
        "Kept: success times learnability, the spike, and gated imitation. Other values of "
        "`reward`, `penalty`, `imitation` and `imitated` are controls."
    ),
    "TeacherRL": (
        "The original's own control: success less the student's mean surprisal, and plain "
        "imitation."
    ),
    "StudentGRPO": "GRPO without a penalty; the student learns from its own rollouts.",
}
