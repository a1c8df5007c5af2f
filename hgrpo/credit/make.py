"""The credit assigner that a method asks for."""

from hgrpo.credit.base import Context, CreditAssigner
from hgrpo.credit.kinds import load, settings_of
from hgrpo.credit.section import CreditConfig


def make_assigner(config: CreditConfig, context: Context) -> CreditAssigner:
    """An assigner with its settings; `context` is what it may use beside the trajectories."""
    return load(config.kind).make(settings_of(config.kind)(**config.settings), context)
