"""What is known to be missing before the first job runs."""

from collections.abc import Iterable, Mapping

from hgrpo.config.training import MethodConfig
from hgrpo.credit.judge.settings import SERVICE
from hgrpo.errors import UserError


def key_variable(method: MethodConfig) -> str | None:
    """The environment variable that holds the key of a method's judge; None: it needs no key."""
    credit = method.credit
    if not method.train or credit.kind != "judge" or credit.settings["base_url"] == SERVICE:
        return None
    return credit.settings["api_key_env"]


def missing_key(method: MethodConfig, environment: Mapping[str, str]) -> str | None:
    """The variable that should hold the key of a method's judge and does not; None: all is well."""
    variable = key_variable(method)
    return variable if variable and not environment.get(variable, "").strip() else None


def check_keys(methods: Iterable[MethodConfig], environment: Mapping[str, str]) -> None:
    """Refuse to start rounds that would stop for want of a judge's key.

    Args:
        methods: those that have rounds to play.
        environment: of the process.

    Raises:
        UserError: naming method, judge and variable.
    """
    for method in methods:
        variable = missing_key(method, environment)
        if variable:
            judge = method.credit.settings
            raise UserError(
                f"{method.name}: the key of its judge, {judge['model']} at {judge['base_url']}, is "
                f"missing: set the environment variable {variable} (or credit.api_key_env, null "
                "where no key is needed)"
            )
