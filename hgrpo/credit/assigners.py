"""The assigners by the name a method's config gives; a new method is one file and one line here."""

from collections.abc import Callable

from hgrpo.config.training import CreditConfig
from hgrpo.credit.base import CreditAssigner
from hgrpo.credit.flat import FlatCredit
from hgrpo.credit.progress import ProgressCredit
from hgrpo.credit.random import RandomCredit

ASSIGNERS: dict[str, Callable[[], CreditAssigner]] = {
    "flat": FlatCredit,
    "progress": ProgressCredit,
    "random": RandomCredit,
}


def make_assigner(config: CreditConfig) -> CreditAssigner:
    """The assigner a method asks for."""
    return ASSIGNERS[config.kind]()
