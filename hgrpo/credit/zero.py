"""Control that assigns credit 0 to every turn, which is blended with the trajectory's advantage."""

from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


make = FlatCredit
