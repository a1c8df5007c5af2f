"""Check the names of targets and rules that a command or a profile gives."""

from collections.abc import Collection, Iterable

from hgrpo.config.read import did_you_mean
from hgrpo.errors import UserError

# Old name -> new name, of rules and of their folders below results/<study>.
_RULES = {"turnrd_fit": "credit_fit"}
_FOLDERS = {"turnrd": "credit_fit"}
# A target of this form is unknown, unless it is the name or an output of another rule.
UNKNOWN = rf"[A-Za-z_]\w*|results/[^/]+/({'|'.join(_FOLDERS)})/.+"


def unknown_target(target: str, known: Collection[str]) -> str:
    """One line about an unknown target, which matches `UNKNOWN`; `known` holds all valid names."""
    if "/" in target:
        results, study, folder, rest = target.split("/", 3)
        return f"{target}: this is now {results}/{study}/{_FOLDERS[folder]}/{rest}"
    if target in _RULES:
        return f"{target}: this rule is now called {_RULES[target]}"
    return f"{target}: no such target{did_you_mean(target, known)}"


def check_rules(option: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse settings for a rule that does not exist; Snakemake would ignore them.

    Args:
        option: the option with the settings, for the message.
        given: names of rules in the option.
        known: names of all rules.

    Raises:
        UserError: a rule does not exist. The message names the option and the rule.
    """
    for name in given:
        if name not in known:
            near = f"; it is now called {_RULES[name]}" if name in _RULES else ""
            raise UserError(f"{option}: {name}: no such rule{near or did_you_mean(name, known)}")
