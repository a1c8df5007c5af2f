"""TurnRD: a learnt decomposition of the return over the turns."""

from hgrpo.credit import counterfactual
from hgrpo.credit.base import Context
from hgrpo.credit.turnrd.settings import Settings

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context):
    """The assigner; torch is imported here, since reading a study does not need it."""
    from hgrpo.credit.turnrd.assigner import TurnRDCredit

    wanted = settings.counterfactual
    targets = None if wanted is None else counterfactual.make(wanted, context)
    return TurnRDCredit(settings, context, targets)
