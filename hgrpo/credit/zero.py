"""Control that assigns credit 0 to every turn, so that only the trajectory's advantage matters."""

from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


make = FlatCredit
