"""A control: the same blend as an arm with turn credit, but every turn's credit is 0."""

from hgrpo.credit.base import Context
from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


def make(settings: Settings, context: Context) -> FlatCredit:
    """Make the assigner; neither argument is used."""
    return FlatCredit()
