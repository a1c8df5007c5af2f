"""What a credit assigner declares of itself: the base class of every assigner's `Settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hgrpo.config.strict import Strict

SumsTo = Literal["return", "progress", ""]


@dataclass(frozen=True)
class StoredCredit:
    """How the credit of rollouts from an earlier run is computed.

    Attributes:
        settings: the assigner's settings here; they may differ from the method's.
        sums_to: what each trajectory's credit sums to here, see `CreditSettings`.
        note: what a reader of the comparison must know, "" if nothing.
        stand_in: whether all credit is a stand-in, because there is no fitted model.
    """

    settings: "CreditSettings"
    sums_to: SumsTo
    note: str = ""
    stand_in: bool = False


class CreditSettings(Strict):
    """The assigner's keys beside `kind`, as fields, and what the assigner declares of itself.

    A subclass overrides a declaration with a class attribute, or with a property where it depends
    on the settings. The module must not import torch: reading a study loads it.

    Attributes:
        reads_situations: it needs the fingerprints of the states that turns were taken in.
        reads_embeddings: it needs an embedding of each turn, pooled by the engine if that can.
        needs_policy: it uses the policy, the conversation or the collector of its `Context`.
        plays: it plays episodes of its own to compute credit.
        fits: it learns between rounds, with its module's `fit` (see `kinds`).
        continues_fit: a fit starts from the model of the previous round's fit.
        sums_to: what a trajectory's credit sums to: its return, its progress, or nothing known.
        demands: keys of the method that must have one value: key -> (value, why).
        label_remark: what every label of the arm must add, such as who judged.
        first_round_remark: what a reader of the first round's credit must know, as a sentence.
        is_control: the arm is a control that a method with a gain from credit must beat.
        figures: names of the report's figures that are drawn only for this assigner's arms.
        uses: capabilities of the environment that it calls, such as "judge_text".
        environment_variables: name of a variable that must be set -> the message if it is not.
        may_be_unreachable: it asks a service; a comparison leaves it out if the service fails.
        groups_at_once: how many groups `assign_many` should get together.
        fallback_column: key of its report that counts trajectories with stand-in credit.
    """

    reads_situations: ClassVar[bool] = False
    reads_embeddings: ClassVar[bool] = False
    needs_policy: ClassVar[bool] = False
    plays: ClassVar[bool] = False
    fits: ClassVar[bool] = False
    continues_fit: ClassVar[bool] = False
    sums_to: ClassVar[SumsTo] = ""
    demands: ClassVar[Mapping[str, tuple[object, str]]] = {}
    label_remark: ClassVar[str] = ""
    first_round_remark: ClassVar[str] = ""
    is_control: ClassVar[bool] = False
    figures: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ()
    environment_variables: ClassVar[Mapping[str, str]] = {}
    may_be_unreachable: ClassVar[bool] = False
    groups_at_once: ClassVar[int] = 1
    fallback_column: ClassVar[str] = ""

    def outside_calls(self, groups: int, rollouts: int) -> str:
        """Says what crediting so many groups may ask of an outside service; "" if nothing.

        Each group has `rollouts` trajectories.
        """
        return ""

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """How credit of an earlier run's rollouts is computed, with or without a `fitted` model."""
        return StoredCredit(self, self.sums_to)
