"""Command-line flags of the original sandbox that correspond to settings of rules."""

from hgrpo.formulas.rule import Rule

# Maps each flag to the settings that it sets, as "<class that declares the setting>.<setting>".
FLAGS = {
    "eta": ("Gate.eta", "R2VPO.penalty", "PMDMean.tau"),
    "tpo_eta": ("Target.eta",),
    "grpo_beta": ("Clip.beta",),
    "iw_cap": ("Capped.cap",),
    "clip_low": ("ASPO.low", "DAPOLite.low", "Clip.clip"),
    "clip_high": ("ASPO.high", "DAPOLite.high"),
    "kondo_keep": ("Kondo.keep",),
    "replay_age_decay": ("FreshDG.decay",),
    "uncertainty_scale": ("Doubt.scale",),
    "uncertainty_threshold": ("FilteredDG.threshold",),
    "distill_alpha": ("Correction.alpha",),
    "guard": ("DGEntropyGuard.strength",),
    "top_k": ("Truncation.k",),
    "top_k_support": ("Truncation.support",),
    "clip_epsilon": ("OPDPG.clip", "SetRule.clip", "StudentGRPO.clip"),
    "slot_credit": ("Slots.credit",),
    "set_score": ("VPOGRPO.score",),
    "num_weight_samples": ("VPOGRPO.draws",),
    "learnability_lambda": ("TeacherRL.strength",),
    "imitated": ("TeacherRL.imitated",),
    "spike_beta": ("PedagogicalRL.beta",),
    "gate_kappa": ("PedagogicalRL.kappa",),
    "gate_gamma": ("PedagogicalRL.gamma",),
    "reward_form": ("PedagogicalRL.reward",),
    "penalty": ("PedagogicalRL.penalty",),
    "imitation": ("PedagogicalRL.imitation",),
}


def flags_of(rule: type[Rule]) -> dict[str, str]:
    """Map the settings of a rule to their flags, and omit settings that have no flag."""
    classes = [each.__name__ for each in rule.__mro__]
    owned = [
        (flag, *setting.split(".")) for flag, settings in FLAGS.items() for setting in settings
    ]
    return {key: flag for flag, owner, key in owned if owner in classes}
