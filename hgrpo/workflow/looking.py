"""Targets that only show what was trained: they never start to train."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.study.recorded import recorded_file

LOOKING = ("viewer", "paper")
_KEYS = ("seeds", "rounds", "methods")
# So many missing runs are named; of more, only the number is told.
_NAMED = 3


def check_looking(
    targets: Collection[str], missing: Sequence[tuple[str, str]], study: Mapping, results: Path
) -> None:
    """Refuse to train because somebody wants to look at a study.

    A study may have been trained in part, with `seeds=` and `methods=`. Whoever then forgets
    these keys would train the rest.

    Args:
        targets: names of the rules that were asked for.
        missing: (method, seed) of each round that would be trained.
        study: the resolved study of this command.
        results: results/<study>.

    Raises:
        UserError: only pages were asked for, and rounds are missing. The message has the keys of
            the study's last run, if they were others.
    """
    if not missing or not targets or not set(targets) <= set(LOOKING):
        return
    runs = [f"{method} seed {seed}" for method, seed in sorted(set(missing))]
    named = ", ".join(runs[:_NAMED]) + (f" and {len(runs) - _NAMED} more" if runs[_NAMED:] else "")
    train = f"`make bakeoff STUDY={study['name']}`"
    given = _keys_of_last_run(study, results)
    if given:
        hint = (
            f"the last run of this study had {given}: add that to --config, or train with {train}"
        )
    else:
        hint = f"train first, with {train}"
    raise UserError(f"{' and '.join(sorted(targets))}: would have to train {named}; {hint}")


def _keys_of_last_run(study: Mapping, results: Path) -> str:
    """`seeds=`, `rounds=` and `methods=` of the last run, where this command has others."""
    try:
        before = read_yaml(recorded_file(results))
        changed = [key for key in _KEYS if set(_each(before[key])) != set(_each(study[key]))]
        return " ".join(f"{key}={','.join(_each(before[key]))}" for key in changed)
    except (UserError, OSError, LookupError, TypeError):
        return ""


def _each(value: object) -> list[str]:
    """The names or numbers in a setting, as text; a single number is a list of one."""
    return [str(part) for part in value] if isinstance(value, Iterable) else [str(value)]
