"""Control: the same blend as an arm with turn credit, but with credit 0 for every turn."""

from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


make = FlatCredit
