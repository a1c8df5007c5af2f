"""Control with credit 0 for every turn, mixed with the trajectory's advantage as turn credit is."""

from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    is_control = True


make = FlatCredit
