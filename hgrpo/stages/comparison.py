"""The part of a study that figures and report read: its arms, and how to compare them."""

from typing import TYPE_CHECKING

from hgrpo.evaluation.settings import STATISTICS

if TYPE_CHECKING:
    from hgrpo.study.study import Study

# Keys of the training that may be factors of a study.
_FACTORS = {"lr", "rollouts_per_task"}


def comparison(study: "Study") -> dict:
    """Statistics, the reference, and the arms in the order in which they are shown."""
    # A key that one arm changes is shown for all arms, so that they can be told apart.
    shown = _FACTORS.union(*(method.training for method in study.methods.values()))
    return {
        **study.config.evaluation.model_dump(mode="json", include=STATISTICS),
        # The list keeps the arms' order, which JSON with sorted keys would lose.
        "order": list(study.methods),
        "reference": study.config.reference,
        "methods": {
            name: method.model_dump(mode="json", exclude={"training"})
            | {"label": method.shown_label}
            | {"training": study.training[name].model_dump(mode="json", include=shown)}
            for name, method in study.methods.items()
        },
    }
