"""Keep a copy of a report before a smaller run replaces it; refuse to replace it by accident."""

import datetime
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from hgrpo.atomic import atomic_folder
from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.report.rerun import command
from hgrpo.study.overrides import changes
from hgrpo.study.recorded import recorded_file

FOLDER = "earlier_reports"
_ONE = {"seeds": "seed", "methods": "method"}
LOOKING = ("viewer", "paper")
# These write files of the report, or read those that they make anew.
_OF_THE_REPORT = ("figures", "paper")
_RUNS = ("seeds", "rounds", "methods")
# Sections of a resolved study that an override of another key may change as well.
_RESOLVED = ("methods", "env", "model")
# So many missing runs, or changed keys, are named; of more, only the number is told.
_NAMED = 3


def keep_report(root: Path, study: Mapping) -> str:
    """Copy the report if it holds rounds, seeds or arms that the next report will lack.

    A run that only adds rounds, seeds or arms needs no copy: its report holds the old ones too.

    Args:
        root: the study's results folder.
        study: the resolved study that is about to run.

    Returns:
        One line that says what was kept and where; "" if nothing was.
    """
    page = root / "report" / "report.html"
    try:
        before = read_yaml(root / "config.yaml")
        lost = _lost(before, study)
    except (UserError, OSError, LookupError, TypeError):
        return ""
    if not lost or not page.is_file():
        return ""
    written = datetime.datetime.fromtimestamp(page.stat().st_mtime, datetime.UTC)
    kept = root / FOLDER / written.strftime("%Y-%m-%d_%H%M%S")
    if not kept.exists():
        with atomic_folder(kept) as folder:
            shutil.copytree(page.parent, folder, dirs_exist_ok=True)
            shutil.copy2(root / "config.yaml", folder / "config.yaml")
    return f"this run replaces {page} by a report without {lost}; the earlier report is in {kept}"


def _lost(before: Mapping, after: Mapping) -> str:
    """What the earlier study has and the next one lacks, as text; "" if nothing."""
    words = []
    if before["rounds"] > after["rounds"]:
        first, last = after["rounds"] + 1, before["rounds"]
        words.append(f"rounds {first} to {last}" if first < last else f"round {last}")
    for key in _ONE:
        gone = [str(each) for each in before[key] if each not in after[key]]
        if gone:
            words.append(f"{_ONE[key] if len(gone) == 1 else key} {', '.join(gone)}")
    return " and ".join(words)


def check_looking(
    targets: Collection[str],
    missing: Sequence[tuple[str, str]],
    study: Mapping,
    overridden: Mapping[str, object],
    results: Path,
) -> None:
    """Refuse to train, or to replace part of a report, because somebody wants to look at a study.

    A study may have been run in part, with `seeds=` and `methods=`. Whoever then forgets these keys
    would train the rest, or put figures of other runs beside the report's tables. The page of the
    viewer stands apart, so a line on stderr is enough there.

    Args:
        targets: names of the rules that were asked for.
        missing: (method, seed) of each round that would be trained.
        study: the resolved study of this command.
        overridden: key, with dots -> value, where this command changed the study's file.
        results: results/<study>.

    Raises:
        UserError: only pages were asked for, and rounds are missing or the report is of other
            runs. The message has the keys of the study's last run, if they were others.
    """
    asked = " and ".join(sorted(targets))
    only = bool(targets) and set(targets) <= {*LOOKING, *_OF_THE_REPORT}
    if not only:
        return
    train = f"`{command(study, overridden)}`"
    given = keys_of_last_run(study, results)
    if missing and set(targets) <= set(LOOKING):
        runs = [f"{method} seed {seed}" for method, seed in sorted(set(missing))]
        hint = f"train first, with {train}"
        if given:
            said = f"the last run of this study had {given}"
            hint = f"{said}: add that to --config, or train with {train}"
        raise UserError(f"{asked}: would have to train {_few(runs)}; {hint}")
    if not given or not (results / "report" / "report.html").is_file():
        return
    if set(targets) & set(_OF_THE_REPORT):
        raise UserError(
            f"{asked}: the report of this study is of a run with {given}, and this command would "
            "put other numbers beside it; add that to --config, or make another report with "
            f"{train}"
        )
    print(f"{asked}: of other runs than the report, which had {given}", file=sys.stderr)


def keys_of_last_run(study: Mapping, results: Path) -> str:
    """KEY=VALUE of the last run, as `--config` takes them, where this command has other values."""
    try:
        before = read_yaml(recorded_file(results))
        runs = [key for key in _RUNS if set(_each(before[key])) != set(_each(study[key]))]
        rest = [
            {key: value for key, value in each.items() if key not in (*_RUNS, *_RESOLVED)}
            for each in (study, {key: before[key] for key in study if key in before})
        ]
        said = [f"{key}={','.join(_each(before[key]))}" for key in runs]
        if other := changes(*rest):
            said.append(f'set="{_few([f"{key}={value}" for key, value in other.items()], " ")}"')
        return " ".join(said)
    except (UserError, OSError, LookupError, TypeError):
        return ""


def _few(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
    return between.join(names[:_NAMED]) + more


def _each(value: object) -> list[str]:
    """The names or numbers in a setting, as text; a single number is a list of one."""
    return [str(part) for part in value] if isinstance(value, Iterable) else [str(value)]
