"""Settings of assigners that have none."""

from hgrpo.config.strict import Strict


class NoSettings(Strict):
    """Accepts no key."""
