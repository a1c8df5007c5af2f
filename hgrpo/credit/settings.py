"""Base class of assigners' `Settings`, with their config keys, requirements and properties."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hgrpo.config.strict import Strict

SumsTo = Literal["return", "progress", ""]


@dataclass(frozen=True)
class StoredCredit:
    """How to compute credit for the stored rollouts of an earlier run.

    Attributes:
        settings: settings of the assigner; they may differ from the method's settings.
        sums_to: as in `CreditSettings`.
        note: remark to print with comparisons of this credit, or "".
        stand_in: whether all credit is a placeholder because no model has been fitted yet.
    """

    settings: "CreditSettings"
    sums_to: SumsTo
    note: str = ""
    stand_in: bool = False


class CreditSettings(Strict):
    """Base class of assigners' settings.

    A subclass adds the config keys of its assigner as fields, and declares properties of the
    assigner by overriding the attributes below. To override an attribute, use a class attribute, or
    a property if the value depends on the settings. The module of a subclass must not import torch
    at the top level, because it is also imported to read a study.

    Attributes:
        reads_embeddings: whether the assigner requires an embedding of each turn. The engine
            computes embeddings if it can.
        needs_policy: whether the assigner uses the policy, conversation or collector of `Context`.
        plays: whether the assigner plays additional episodes to compute credit.
        fits: whether a model is fitted between rounds by the function `fit` (see `kinds`).
        continues_fit: whether a fit starts from the previous round's model.
        sums_to: "return" or "progress" if this is the sum of a trajectory's credit, else "".
        demands: maps keys of the method's config to pairs (the only allowed value, reason).
        label_remark: suffix of every label of the arm, such as "(offline rubric)".
        first_round_remark: sentence shown with the credit of the first round, or "".
        correlation_with_oracle: correlation with the credit of `oracle` if it follows from the
            settings; None if it must be measured.
        of_turns: whether credit can differ between the turns of a trajectory.
        is_control: whether the arm is a control, which useful credit must outperform.
        figures: names of report figures that are drawn only for arms with this assigner.
        uses: capabilities of the environment that the assigner calls, such as "judge_text".
        extras: required extras of pyproject.toml in addition to `train` and `workflow`.
        environment_variables: required environment variable -> error message if it is not set.
        may_be_unreachable: whether the assigner calls a service. If the service fails, comparisons
            omit the assigner.
        fallback_column: key in `report` with the number of trajectories that got fallback credit,
            or "".
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
        """Describe the calls to external services in a run; "" if there are no such calls.

        The run has `groups` groups of `rollouts` trajectories each.
        """
        return ""

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Return how to compute credit for stored rollouts, with or without a fitted model."""
        return StoredCredit(self, self.sums_to)
