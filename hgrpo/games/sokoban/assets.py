"""Generates levels or reads them from files, checks that they are solvable, and writes them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games import tracking
from hgrpo.games.base import Task
from hgrpo.games.panels import SPLITS, leave_out, share_out, stratified
from hgrpo.games.sokoban.distances import TooManyBoardsError
from hgrpo.games.sokoban.files import compiled, content_hash, split_levels, write_levels
from hgrpo.games.sokoban.generator import generate, task_type
from hgrpo.games.sokoban.level import Level, LevelError, canonical, read_level
from hgrpo.games.sokoban.settings import SokobanSettings
from hgrpo.games.user_path import files_below, user_path, user_text

FOLDER = "levels"
_SUFFIXES = (".txt", ".xsb", ".sok")


def make(
    config: SokobanSettings, seed: int, out: Path, skipped: Counter[str]
) -> Iterator[tuple[str, Task]]:
    """Check each level, write it to the file of its split, and yield (split, task) in panel order.

    Args:
        skipped: maps a reason to the number of excluded levels; updated in place.

    Raises:
        UserError: levels cannot be read or generated, or a level is invalid or cannot be solved
            within an episode.
    """
    sizes = config.panels.sizes
    if config.levels.generate is not None:
        source = _generated(config, sizes, seed)
    else:
        source = _collected(config, sizes, seed, skipped)
    (out / FOLDER).mkdir(parents=True)
    total = None if None in sizes.values() else sum(sizes.values())
    written: dict[str, list[tuple[str, str]]] = {split: [] for split in sizes}
    splits: dict[str, str] = {}  # canonical text of a level -> first split that contains it
    for split, name, level, length in tracking.bar(
        source, total=total, desc="assets", unit="level"
    ):
        place = f"{FOLDER}/{split}.xsb#{len(written[split])}"
        written[split].append((name, level.text))
        if splits.setdefault(canonical(level, crop=True), split) != split:
            skipped["level of another panel elsewhere in its room: kept"] += 1
        yield split, Task(name, place, content_hash(level.text), task_type(length, config.lengths))
    for split, levels in written.items():
        write_levels(out / FOLDER / f"{split}.xsb", levels)


Row = tuple[str, str, Level, int]  # split, task name, level, length of the shortest solution


def _generated(config: SokobanSettings, sizes: dict[str, int], seed: int) -> Iterator[Row]:
    numbers: Counter[str] = Counter()
    for split, level, length in generate(config.levels.generate, sizes, seed):
        yield split, f"{split}-{numbers[split]}", level, length
        numbers[split] += 1


def _collected(
    config: SokobanSettings, sizes: dict[str, int | None], seed: int, skipped: Counter[str]
) -> Iterator[Row]:
    """Yield the levels in the user's folder. Bands of solution length alternate.

    `seed` determines the order within a band. Invalid levels, and levels equivalent to an earlier
    one of the same split, are excluded and counted. With `leave_out_unsolvable`, so are levels for
    which no solution was found. Levels that no panel needs are also checked.
    """
    root = user_path(config.levels.folder or "", "levels.folder")
    owners: dict[str, tuple[str, str]] = {}  # canonical text of a level -> (split, location)
    for split in SPLITS:
        rows: list[Row] = []
        for file, name in _files(root / getattr(config.levels.splits, split), split):
            levels = split_levels(user_text(file))
            if not levels:
                leave_out(
                    skipped, "level file", UserError(f"{file}: the file contains no level"), root
                )
            for number, (title, text) in enumerate(levels):
                where = f"{file}: level {title}"
                try:
                    level, length = _certified(text, config.actions)
                except LevelError as error:
                    leave_out(skipped, "level", UserError(f"{where}: {error}"), root)
                    continue
                if length is None:
                    reason = f"no solution of at most {config.actions} actions is known"
                    if not config.levels.leave_out_unsolvable:
                        raise UserError(
                            f"{where}: {reason}; increase `actions`, or set "
                            "`levels.leave_out_unsolvable` to exclude such levels"
                        )
                    skipped[reason] += 1
                    continue
                entry = split, where
                owner = owners.setdefault(canonical(level, crop=True), entry)
                if owner is entry:
                    rows.append((split, f"{split}-{name}-{number}", level, length))
                elif owner[0] == split:
                    skipped["same as another level of its panel"] += 1
                else:
                    raise UserError(
                        f"{where}: levels.splits.{split}: this level is the same as {owner[1]} of "
                        f"{owner[0]}, up to symmetry and position; remove one of them"
                    )
        stream = "sokoban-panel", seed, split
        ordered = stratified(rows, lambda row: task_type(row[3], config.lengths), *stream)
        yield from ((panel, *row[1:]) for panel, row in share_out(split, ordered, sizes))


def _files(place: Path, split: str) -> list[tuple[Path, str]]:
    """Path and name of each level file. In names, slashes are replaced by `-`."""
    files = [
        (path, name.replace("/", "-"))
        for path, name in files_below(place)
        if path == place or (path.suffix.lower() in _SUFFIXES and not path.name.startswith("."))
    ]
    if not files or not place.exists():
        raise UserError(f"levels.splits.{split}: level file not found: {place}")
    return files


def _certified(text: str, actions: int) -> tuple[Level, int | None]:
    """Return the parsed level and its shortest solution length (None if no solution was found)."""
    level = read_level(text)
    try:
        return level, compiled(level.text, actions)[1].get(level.start)
    except TooManyBoardsError:
        return level, None
