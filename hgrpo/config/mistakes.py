"""Collects user errors, so that one run reports all of them."""

from collections.abc import Callable
from typing import TypeVar

from hgrpo.errors import UserError

Result = TypeVar("Result")


class Mistakes(list[str]):
    """Lines of user errors, each once."""

    def attempt(self, make: Callable[..., Result], *given: object) -> Result | None:
        """The result of `make(*given)`; None if it raises a UserError, whose lines are added."""
        try:
            return make(*given)
        except UserError as error:
            self.extend(line for line in str(error).splitlines() if line not in self)
            return None

    def end(self) -> None:
        """Raise a UserError of all lines, if there are any."""
        if self:
            raise UserError("\n".join(self))
