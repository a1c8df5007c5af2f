"""Base class of the assigners' `Settings`: their keys, requirements and properties."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hgrpo.config.strict import Strict

SumsTo = Literal["return", "progress", ""]


@dataclass(frozen=True)
class StoredCredit:
    """How to compute credit for rollouts of an earlier run.

    Attributes:
        settings: settings of the assigner; they may differ from the method's.
        sums_to: sum of each trajectory's credit, see `CreditSettings`.
        note: remark for readers of the comparison, or "".
        stand_in: whether all credit is a placeholder, because there is no fitted model.
    """

    settings: "CreditSettings"
    sums_to: SumsTo
    note: str = ""
    stand_in: bool = False


class CreditSettings(Strict):
    """The assigner's keys besides `kind`, as fields, and the assigner's declarations.

    A subclass overrides a declaration with a class attribute, or with a property if it depends on
    the settings. Importing a subclass's module must not import torch, because reading a study
    imports the module.

    Attributes:
        reads_embeddings: whether the assigner requires an embedding of each turn, pooled by the
            engine if possible.
        needs_policy: whether it uses the policy, the conversation or the collector of `Context`.
        plays: whether it plays additional episodes to compute credit.
        fits: whether it fits a model between rounds with its module's `fit` (see `kinds`).
        continues_fit: whether its fit starts from the previous round's model.
        sums_to: sum of a trajectory's credit: its return or its progress; "" if neither.
        demands: maps keys of the method's config to (the only allowed value, the reason).
        label_remark: suffix of every label of the arm, such as "(offline rubric)".
        first_round_remark: a sentence for readers of the first round's credit.
        correlation_with_oracle: correlation with the credit of `oracle`, if the settings determine
            it; None if it must be measured.
        of_turns: whether credit is meant to differ between the turns of a trajectory.
        is_control: whether the arm is a control, which a method with useful credit must beat.
        figures: names of report figures drawn only for this assigner's arms.
        uses: capabilities of the environment that the assigner calls, such as "judge_text".
        extras: extras of pyproject.toml that it requires besides `train` and `workflow`.
        environment_variables: maps each required variable to the error message if it is not set.
        may_be_unreachable: whether it calls a service. Comparisons omit it if the service fails.
        fallback_column: key in the assigner's report that counts trajectories with fallback credit.
    """

    reads_embeddings: ClassVar[bool] = False
    needs_policy: ClassVar[bool] = False
    plays: ClassVar[bool] = False
    fits: ClassVar[bool] = False
    continues_fit: ClassVar[bool] = False
    sums_to: ClassVar[SumsTo] = ""
    demands: ClassVar[Mapping[str, tuple[object, str]]] = {}
    label_remark: ClassVar[str] = ""
    first_round_remark: ClassVar[str] = ""
    correlation_with_oracle: ClassVar[float | None] = None
    of_turns: ClassVar[bool] = True
    is_control: ClassVar[bool] = False
    figures: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ()
    extras: ClassVar[tuple[str, ...]] = ()
    environment_variables: ClassVar[Mapping[str, str]] = {}
    may_be_unreachable: ClassVar[bool] = False
    fallback_column: ClassVar[str] = ""

    def outside_calls(self, groups: int, rollouts: int) -> str:
        """Describe possible calls to an external service; "" without any.

        The assigner credits `groups` groups of `rollouts` trajectories each.
        """
        return ""

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """How to compute credit for an earlier run's rollouts, with or without a fitted model."""
        return StoredCredit(self, self.sums_to)
