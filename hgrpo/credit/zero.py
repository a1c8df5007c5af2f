"""A control: the same blend as an arm with turn credit, but every turn's credit is 0."""

from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


make = FlatCredit
