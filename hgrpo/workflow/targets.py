"""Check the names of targets and rules that a command or a profile gives."""

import difflib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from hgrpo.config.read import did_you_mean
from hgrpo.errors import UserError

# Old name -> new name, of rules and of their folders below results/<study>.
_RULES = {"turnrd_fit": "credit_fit"}
_FOLDERS = {"turnrd": "credit_fit"}
# A setting that stands before --config, which Snakemake takes for a target.
_SETTING = r"[A-Za-z_][\w.]*=.*"
# A target of this form is unknown if no other rule has that name or makes that file.
UNKNOWN = rf"[A-Za-z_]\w*|{_SETTING}|results/[^/]+/({'|'.join(_FOLDERS)})/.+"
# Options of snakemake that take a path. The path after such an option is not a target.
_TAKES_A_PATH = ("--report", "--archive", "--directory", "-d")
# No option, or one that takes no word.
_DRY = ("", "-n", "--dry-run", "--dryrun", "-np")


def unknown_target(target: str, known: Collection[str], elsewhere: Sequence[str] = ()) -> str:
    """One line about an unknown target, which matches `UNKNOWN`.

    Args:
        target: the target.
        known: all valid names.
        elsewhere: names of other studies that have an axis of this target.
    """
    if re.fullmatch(_SETTING, target):
        given = f'set="{target}"' if "." in target.partition("=")[0] else target
        return f"{target}: a setting stands after --config: --config {given}"
    if elsewhere:
        return (
            f"{target}: the study has no such axis, but {' and '.join(elsewhere)} "
            f"{'has' if len(elsewhere) == 1 else 'have'}; add study={elsewhere[0]} to --config"
        )
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


def check_wildcards(arguments: Sequence[str], of_many_jobs: Mapping[str, str]) -> None:
    """Refuse a rule with wildcards as a target.

    Args:
        arguments: words of the command, without the program.
        of_many_jobs: rule with wildcards -> a file that one of its jobs writes.

    Raises:
        UserError: there is such a target. The message names the file.
    """
    option = ""
    for word in arguments:
        option = word if word.startswith("-") else option
        # After another option, the word may be a value, as in `--until rl_round`.
        if word in of_many_jobs and option in _DRY:
            raise UserError(
                f"{word}: this rule has many jobs; name a file of one of them, such as "
                f"{of_many_jobs[word]}"
            )


def target_paths(arguments: Sequence[str]) -> list[str]:
    """The targets below results/ in a command, without the paths that options take."""
    before = ["", *arguments]
    return [
        word
        for option, word in zip(before, arguments, strict=False)
        if word.startswith("results/") and not option.startswith(_TAKES_A_PATH)
    ]


def check_paths(
    targets: Iterable[str],
    made: Callable[[str], bool],
    studies: Collection[str],
    files: Sequence[str],
) -> None:
    """Refuse targets that do not exist and that no rule makes.

    Args:
        targets: from `target_paths`.
        made: says whether a rule makes a file.
        studies: names of all studies.
        files: the chosen study's files, to suggest the nearest.

    Raises:
        UserError: there is such a target. The message names the nearest study or file.
    """
    for target in targets:
        if made(target) or os.path.exists(target):
            continue
        name = target.split("/")[1]
        if name not in studies:
            raise UserError(f"{target}: no study {name!r}{did_you_mean(name, studies)}")
        near = difflib.get_close_matches(target, files, n=1, cutoff=0)
        raise UserError(f"{target}: no such target; did you mean {near[0]!r}?")
