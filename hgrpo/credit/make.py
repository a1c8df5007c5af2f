"""Makes the credit assigner that a method asks for."""

from hgrpo.credit import kinds
from hgrpo.credit.base import Context, CreditAssigner
from hgrpo.credit.section import CreditConfig
from hgrpo.errors import UserError


def make_assigner(config: CreditConfig, context: Context) -> CreditAssigner:
    """The assigner with its settings.

    Raises:
        UserError: what the kind's `make` returned is not a `CreditAssigner`.
    """
    module = kinds.load(config.kind)
    assigner = module.make(config.declared, context)
    if not isinstance(assigner, CreditAssigner):
        raise UserError(
            f"{module.__name__}: make returned a {type(assigner).__name__}, which is no credit "
            "assigner; derive its class from hgrpo.credit.base.CreditAssigner"
        )
    return assigner
