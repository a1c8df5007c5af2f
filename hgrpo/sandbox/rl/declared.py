"""The 31 rules: what each needs, which function is its term, and where its settings come from."""

from hgrpo.sandbox.rl import rule_settings as of
from hgrpo.sandbox.rule import Rule

PACKAGE = "hgrpo.sandbox.rl.rules"
_ETA, _CAP = {"eta": "eta"}, {"cap": "iw_cap"}
_CLIP = {"clip": "clip_low", "beta": "grpo_beta"}
_BAND = {"low": "clip_low", "high": "clip_high"}
_TARGET = {"eta": "tpo_eta"}
_GROUPS = ("groups", "no_replay")
_CANDIDATES = ("token_rewards", "groups", "on_policy", "clean", "no_diagnostics")
_LABELS = ("sequences", "clean")
# A rule that credits single tokens -> the function that gives their advantages.
CREDITS = {
    "DGToken": "dg_token.token_credit",
    "SelfDistillDG": "labels.token_credit",
    "TEMPO": "group.tempo_credit",
}


def _grouped(name: str, term: str, *needs: str, **more: object) -> Rule:
    return Rule(name, term, (*_GROUPS, *needs), grouped=True, **more)


RULES = {
    rule.name: rule
    for rule in (
        Rule("CE", "labels.cross_entropy", oracle=True),
        Rule("REINFORCE", "pg.reinforce"),
        Rule("PG", "pg.pg", ("off_policy",), of.Capped, _CAP),
        Rule("TrajPG", "pg.traj_pg", ("off_policy",), of.Capped, _CAP),
        Rule("ASPO", "pg.aspo", ("off_policy",), of.Aspo, _BAND),
        Rule("R2VPO", "pg.r2vpo", ("off_policy",), of.R2vpo, {"penalty": "eta"}),
        Rule("DG", "dg.dg", (), of.Gate, _ETA),
        Rule(
            "Kondo",
            "dg.dg",
            ("two_survivors",),
            of.Screen,
            {**_ETA, "keep": "kondo_keep"},
            screen="kondo.screen",
        ),
        Rule("DGToken", "dg_token.dg_token", ("token_rewards", "clean"), of.Gate, _ETA),
        Rule("ReplayDG", "dg.dg", ("replay",), of.Gate, _ETA),
        Rule(
            "FreshDG",
            "dg.fresh_dg",
            ("ages", "ages_vary"),
            of.Fresh,
            {**_ETA, "decay": "replay_age_decay"},
        ),
        Rule("DGEntropyGuard", "dg.guarded_dg", (), of.Guard, {**_ETA, "strength": "guard"}),
        Rule(
            "UncertaintyDG",
            "dg.uncertain_dg",
            (),
            of.Doubt,
            {**_ETA, "scale": "uncertainty_scale"},
        ),
        Rule(
            "FilteredDG",
            "dg.filtered_dg",
            ("filter_acts", "filter_compares"),
            of.Filter,
            {**_ETA, "threshold": "uncertainty_threshold"},
        ),
        Rule(
            "RewardVarianceDG",
            "dg.variance_dg",
            (),
            of.Doubt,
            {**_ETA, "scale": "uncertainty_scale"},
        ),
        Rule("LogGrowth", "pg.log_growth", ("bandit", "no_kl", "clean")),
        Rule(
            "SelfDistillDG",
            "labels.self_distill",
            _LABELS,
            of.Correction,
            {**_ETA, "alpha": "distill_alpha"},
        ),
        Rule(
            "SCOPELite",
            "labels.scope",
            _LABELS,
            of.Correction,
            {**_ETA, "alpha": "distill_alpha"},
        ),
        _grouped("GRPO", "group.grpo", settings=of.Grpo, flags=_CLIP),
        _grouped("DrGRPO", "group.dr_grpo", settings=of.Clip, flags=_CLIP),
        _grouped("DAPOLite", "group.dapo", "no_kl", settings=of.ClipHigher, flags=_BAND),
        _grouped("DAPO", "group.dapo", "no_kl", settings=of.ClipHigher, flags=_BAND),
        _grouped("TPO", "tpo.tpo", settings=of.Target, flags=_TARGET),
        _grouped("TPONoAnchor", "tpo.tpo_no_anchor", settings=of.Target, flags=_TARGET),
        _grouped("GroupPG", "tpo.group_pg", settings=of.Target, flags=_TARGET),
        Rule(
            "TPOFullAction",
            "tpo.tpo_full_action",
            ("digits", "on_policy", "one_epoch", "clean"),
            of.Target,
            _TARGET,
        ),
        Rule("TPOToken", "token.tpo_token", _CANDIDATES, of.Target, _TARGET, candidates=True),
        Rule("GRPOToken", "token.grpo_token", _CANDIDATES, of.Clip, _CLIP, candidates=True),
        _grouped("TEMPO", "group.tempo", settings=of.Capped, flags=_CAP),
        _grouped(
            "MaxRL",
            "group.maxrl",
            *("right_or_wrong", "no_kl", "clean"),
            settings=of.Capped,
            flags=_CAP,
        ),
        Rule("PMDMean", "pg.pmd", (), of.MirrorDescent, {"tau": "eta"}),
    )
}
