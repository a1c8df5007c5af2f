"""The three rules: what each needs, how it scores a set, and where its settings come from.

They differ in the score alone; all turn it into a clipped surrogate of each slot.
"""

from dataclasses import dataclass

from hgrpo.sandbox.rule import Rule
from hgrpo.sandbox.vpo import rule_settings as of

PACKAGE = "hgrpo.sandbox.vpo.rules"
_CLIP = {"clip": "clip_epsilon"}
_SLOTS = {**_CLIP, "credit": "slot_credit"}
_SETS = {**_SLOTS, "score": "set_score", "draws": "num_weight_samples"}


@dataclass(frozen=True)
class SetRule(Rule):
    """A rule for sets of answers.

    `score` names the function that gives each slot its credit; see `vpo.rules.scores`.
    """

    score: str = ""

    @property
    def functions(self) -> list[str]:
        """The functions that it names, the term first."""
        return [*super().functions, self.score]


def _rule(name: str, score: str, *needs: str, **more: object) -> SetRule:
    needs = ("groups", *needs, "clip_acts")
    return SetRule(name, "clipped.clipped", needs, grouped=True, score=score, **more)


RULES = {
    rule.name: rule
    for rule in (
        _rule("ScalarGRPO", "scores.gold", "one_answer", settings=of.Clipped, flags=_CLIP),
        _rule("MultiRLVR", "scores.gold", "several_answers", settings=of.Slots, flags=_SLOTS),
        _rule("VPOGRPO", "scores.sets", "several_answers", settings=of.Sets, flags=_SETS),
    )
}
