"""Recompute the numbers in docs/tables from the published files.

A study with games.parquet is recomputed completely from `evidence.FILES`. For an older study, only
the numbers that depend on seeds.csv (the score of each run) are recomputed; see `older_pages`. A
list of all other numbers is printed.
"""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import agreement_speed
import evidence
import matplotlib.pyplot as plt
import numpy as np
import older_pages
import pandas as pd

from hgrpo.config.read import read_yaml
from hgrpo.report.draw import study_drawings
from hgrpo.report.style import save
from hgrpo.report.tables import all_tables, scripted_players

# Files with primary data, from which all other files are computed.
GIVEN = {evidence.TUNING, *evidence.FILES}
# These columns of comparisons are not recomputed, because this would require the outcome of every
# game or the previous analysis.
OF_GAMES = ("verdict_before", "standard_error_before")
# Maps each score to the column of seeds.csv that contains this score after the last round.
LAST = {"success": "success", "return": "mean_return"}
# Numbers may differ by rounding errors, because machines add numbers in different orders.
CLOSE = {"rtol": 1e-6, "atol": 1e-9, "equal_nan": True}


def check(folder: Path, drawn: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Compare a study's tables with those recomputed from its own files.

    Args:
        folder: docs/tables/<study>.
        drawn: maps the names of the report's figures to the names of their data in `folder`.

    Returns:
        The numbers that differ, and the files that cannot be recomputed completely.
    """
    if (folder / evidence.GAMES).is_file():
        expected = recomputed(folder, drawn)
    elif (folder / "seeds.csv").is_file():
        expected = from_seeds(folder)
    else:
        expected = {}
    if (folder / f"{agreement_speed.NAME}.csv").is_file():
        arms = agreement_speed.points(folder)
        expected[agreement_speed.NAME] = agreement_speed.correlations(arms)
    wrong, rest = [], []
    for path in sorted(folder.iterdir()):
        if (
            path.is_dir()
            or path.name in GIVEN
            or (path.name == "seeds.csv" and path.name[:-4] not in expected)
        ):
            continue
        if path.stem not in expected:
            rest.append(path.name)
            continue
        here, there = pd.read_csv(path), _as_file(expected[path.stem])
        wrong += [f"{path}: {each}" for each in differences(here, there)]
        lacking = [name for name in here if name not in (*there, "label")]
        rest += [f"{path.name}{_part(lacking, there)}"] if lacking else []
    return wrong, rest


def recomputed(
    folder: Path, drawn: Mapping[str, str], pictures: Path | None = None
) -> dict[str, pd.DataFrame]:
    """Recompute all tables of a study with games.parquet; the keys are the tables' names.

    Args:
        folder, drawn: as for `check`.
        pictures: folder in which all figures are saved. If None, no figure is saved, and the data
            of figures are recomputed only if `folder` contains the data of at least one figure.
    """
    inputs, fits = evidence.published(folder)
    expert = folder / "expert.json"
    tables = all_tables(inputs, scripted_players(read_yaml(expert) if expert.is_file() else {}))
    tables["cost"] = tables["cost"].drop(columns=evidence.TIMINGS, errors="ignore")
    draws = pictures or any((folder / f"{name}.csv").is_file() for name in drawn.values())
    draws = draws or any(folder.glob("axis_*.csv"))
    for drawing in study_drawings(inputs, {}, {}, fits) if draws else ():
        name = drawing.name if drawing.name.startswith("axis_") else drawn.get(drawing.name)
        if name:
            tables[name] = drawing.data
        if pictures:
            save(drawing, pictures)
        plt.close(drawing.figure)
    return tables


def from_seeds(folder: Path) -> dict[str, pd.DataFrame]:
    """Recompute columns that depend on seeds.csv, for a study without games.parquet.

    Returns:
        The recomputed columns of each table, by the name of the table.
    """
    runs = older_pages.read_runs(folder)
    tables = {}
    for name in older_pages.FAMILIES:
        table = older_pages.read(folder, name)
        if len(table):
            before = table.assign(standard_error=table["standard_error_before"])
            family = older_pages.family(table, older_pages.of_games(before, runs), runs)
            tables[name] = family.drop(columns=[each for each in OF_GAMES if each in family])
    gates = older_pages.read(folder, "gates")
    if len(gates):
        tables["gates"] = older_pages.judged_gates(gates, tables["against_reference"])
    by_seed = pd.read_csv(folder / "seeds.csv")
    columns = [name for name in ("endpoint", "success", "mean_return") if name in by_seed]
    arms = by_seed.groupby(["method", "temperature"], sort=False)
    means = arms[columns].mean().assign(n_seeds=arms.size()).reset_index()
    methods = pd.read_csv(folder / "methods.csv")[["method", "temperature"]]
    tables["methods"] = methods.merge(means, how="left")
    declared = older_pages.read(folder, "endpoints")
    if len(declared):
        tables["endpoints"] = _endpoints(declared, means)
    others = older_pages.read(folder, "other_endpoints")
    if len(others):
        tables["other_endpoints"] = _other_endpoints(others, means)
    tables["rounds"] = _rounds(pd.read_csv(folder / "rounds.csv"), means)
    return tables


def _endpoints(published: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Recompute means at the declared endpoint and at the last round; copy all other rows."""
    arms = means.set_index(["method", "temperature"])
    values = [
        arms.at[(row.method, row.temperature), "endpoint" if row.declared else LAST[row.score]]
        if row.declared or row.endpoint == "last_round"
        else row.mean
        for row in published.itertuples()
    ]
    keys = ["endpoint", "score", "declared", "method", "temperature"]
    return published[keys].assign(mean=values)


def _other_endpoints(published: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Recompute differences at the last round; copy all other rows."""
    arms = means.set_index(["method", "temperature"])
    values = [
        arms.at[(row.method, 0.0), LAST[row.score]]
        - arms.at[(row.baseline, row.baseline_temperature), LAST[row.score]]
        if row.endpoint == "last_round"
        else row.difference
        for row in published.itertuples()
    ]
    keys = ["endpoint", "score", "method", "baseline", "baseline_temperature"]
    return published[keys].assign(difference=values)


def _rounds(published: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Recompute success on the test panel after the last round; copy all other rows."""
    greedy = means[means["temperature"] == 0].set_index("method")["success"]
    ends = published.groupby("method")["round"].transform("max") == published["round"]
    last = ends & (published["panel"] == "test")
    success = published["success"].mask(last, published["method"].map(greedy))
    return published[["method", "round", "panel"]].assign(success=success)


def differences(here: pd.DataFrame, there: pd.DataFrame) -> list[str]:
    """Differences between a published and a recomputed table, in their common columns."""
    if len(here) != len(there):
        return [f"{len(here)} rows, not {len(there)}"]
    faults = [f"no column {name}" for name in there if name not in here]
    for name in (name for name in there if name in here):
        mine, other = here[name], there[name]
        if pd.api.types.is_numeric_dtype(mine) and pd.api.types.is_numeric_dtype(other):
            equal = np.isclose(mine.to_numpy(float), other.to_numpy(float), **CLOSE)
        else:
            texts = (
                each.astype(object).where(each.notna(), "").astype(str) for each in (mine, other)
            )
            equal = np.equal(*(each.to_numpy() for each in texts))
        places = np.flatnonzero(~equal)
        if len(places):
            first, more = places[0], f" and {len(places) - 1} more" if len(places) > 1 else ""
            apart = f"{mine[first]}, but the files give {other[first]}"
            faults.append(f"{name}, row {first + 1}{more}: {apart}")
    return faults


def _part(lacking: list[str], there: pd.DataFrame) -> str:
    """Describe which columns of a table cannot be recomputed.

    The text lists these columns or, if that is shorter, "except for" and all other columns.
    """
    names = {"method", "label", "baseline", "baseline_temperature", "temperature"}
    others = [name for name in there if name not in names]
    if len(lacking) <= len(others):
        return f": {', '.join(lacking)}"
    return f" except for {', '.join(others)}"


def _as_file(table: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(StringIO(table.to_csv(index=False)))
