"""The three rules: what each needs, which functions it takes, and where its settings come from."""

from dataclasses import dataclass

from hgrpo.sandbox.pedagogy import rule_settings as of
from hgrpo.sandbox.rule import Rule

PACKAGE = "hgrpo.sandbox.pedagogy.rules"
_CLIP = {"clip": "clip_epsilon"}
_TAUGHT = {**_CLIP, "strength": "learnability_lambda", "imitated": "imitated"}
_LESSON = {
    **_TAUGHT,
    "beta": "spike_beta",
    "kappa": "gate_kappa",
    "gamma": "gate_gamma",
    "reward": "reward_form",
    "penalty": "penalty",
    "imitation": "imitation",
}


@dataclass(frozen=True)
class PedagogyRule(Rule):
    """A rule for a student, and perhaps for its teacher.

    `term` updates the policy that compares its own rollouts: the teacher, or without one the
    student. `reward` names what the teacher is paid for, and `imitate` the student's term of the
    teacher's rollouts; both are empty without a teacher.
    """

    reward: str = ""
    imitate: str = ""

    @property
    def functions(self) -> list[str]:
        """The functions that it names, the term first."""
        return [*super().functions, *filter(None, (self.reward, self.imitate))]

    @property
    def teaches(self) -> bool:
        return bool(self.reward)


def _rule(
    name: str, settings: type[of.Clipped], flags: dict[str, str], *needs: str, **lesson: str
) -> PedagogyRule:
    needs = ("groups", *needs)
    return PedagogyRule(name, "grpo.grpo", needs, settings, flags, grouped=True, **lesson)


RULES = {
    rule.name: rule
    for rule in (
        _rule(
            "PedagogicalRL",
            of.Lesson,
            _LESSON,
            *("teacher_steps", "penalty_counts", "tokens_to_compare"),
            reward="lesson.reward",
            imitate="imitation.imitate",
        ),
        _rule(
            "TeacherRL",
            of.Taught,
            _TAUGHT,
            *("teacher_steps", "penalty_counts"),
            reward="lesson.plain_reward",
            imitate="imitation.imitate_plainly",
        ),
        _rule("StudentGRPO", of.Clipped, _CLIP),
    )
}
