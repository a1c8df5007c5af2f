"""The base class of the assigners' `Settings`: their keys, needs and properties."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hgrpo.config.strict import Strict

SumsTo = Literal["return", "progress", ""]


@dataclass(frozen=True)
class StoredCredit:
    """How the credit of rollouts from an earlier run is computed.

    Attributes:
        settings: settings that the assigner is made with; they may differ from the method's.
        sums_to: sum of each trajectory's credit, see `CreditSettings`.
        note: remark for readers of the comparison, or "".
        stand_in: whether all credit is a stand-in, because there is no fitted model.
    """

    settings: "CreditSettings"
    sums_to: SumsTo
    note: str = ""
    stand_in: bool = False


class CreditSettings(Strict):
    """The assigner's keys beside `kind`, as fields, and the assigner's declarations.

    A subclass overrides a declaration with a class attribute, or with a property if the declaration
    depends on the settings. Reading a study imports the subclass's module. Importing it must
    therefore not import torch.

    Attributes:
        reads_embeddings: the assigner needs an embedding of each turn, pooled by the engine where
            possible.
        needs_policy: it uses the policy, the conversation or the collector of its `Context`.
        plays: it plays episodes of its own to compute credit.
        fits: it learns between rounds, with its module's `fit` (see `kinds`).
        continues_fit: its fit starts from the model of the previous round's fit.
        sums_to: sum of a trajectory's credit: its return or its progress; "" if neither.
        demands: maps keys of the method's config to (the only value allowed, the reason).
        label_remark: text that every label of the arm must add, such as "(offline rubric)".
        first_round_remark: a sentence for readers of the first round's credit.
        correlation_with_oracle: how credit correlates with that of `oracle`, if the settings fix
            it; None if it must be measured.
        of_turns: credit is meant to differ between the turns of a trajectory.
        is_control: the arm is a control. A method that gains from turn credit must beat it.
        figures: names of the report's figures that are drawn only for this assigner's arms.
        uses: capabilities of the environment that the assigner calls, such as "judge_text".
        extras: extras of pyproject.toml that it needs beside `train` and `workflow`.
        environment_variables: maps each variable that must be set to the message if it is not.
        may_be_unreachable: it calls a service. A comparison omits it if the service fails.
        fallback_column: key in the assigner's report that counts trajectories with stand-in credit.
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
        """Describe the calls that the assigner may make to an outside service; "" for none.

        It credits `groups` groups of `rollouts` trajectories each.
        """
        return ""

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """How to compute credit of an earlier run's rollouts, with or without a `fitted` model."""
        return StoredCredit(self, self.sums_to)
