"""Read, write and merge the evidence of a published study: games, training logs and settings.

The evidence consists of these files in docs/tables/<study>/:

games.parquet     success, return and turns of every game of every evaluation
training.csv.gz   one row per optimiser batch of every run: rollouts, dead groups, diagnostics
fits.csv.gz       one row per epoch of every fit between rounds; only if the study has fits
stops.csv         the runs that were stopped by a rule
collapse.csv      dependence of replies on their prompts; only if an arm measures it
expert.json       summary of the expert, with the success of the scripted players
study.json        the arms, the settings of the statistics, the precision of training and, in
                  the key `recorded`, all settings of the runs

A study may be run in slices that each contain some of its seeds or arms; `merged` merges the
evidence of two slices.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd

from hgrpo import parquet
from hgrpo.errors import UserError
from hgrpo.evaluation.merge import check_episodes, merge_episodes
from hgrpo.report.csv_file import write_csv
from hgrpo.report.inputs import Inputs, make_inputs
from hgrpo.report.logs import read_collapse, read_fits, read_logs, read_stops
from hgrpo.report.tables import scripted_players
from hgrpo.stages.comparison import comparison
from hgrpo.stages.files import seeds_of
from hgrpo.study.overrides import changes
from hgrpo.study.recorded import recorded_study
from hgrpo.study.study import Study, load_study

GAMES, SETTINGS, EXPERT = "games.parquet", "study.json", "expert.json"
TRAINING, FITS = "training.csv.gz", "fits.csv.gz"
STOPS, COLLAPSE = "stops.csv", "collapse.csv"
FILES = (GAMES, SETTINGS, EXPERT, TRAINING, FITS, STOPS, COLLAPSE)
TUNING = "tuning.csv.gz"
# Timings are excluded, because they depend on the load of the machine.
TIMINGS = ["seconds", "collect_s", "credit_s", "update_s", "fit_s", "elapsed_s"]
RUN = ["method", "seed"]
# Sections of a resolved study that must be the same in all of its slices.
RECORDED = ("env", "model", "engine", "rounds", "reference", "training", "sft", "evaluation")
TUNED = ["success", "mean_return"]


@dataclass(frozen=True)
class Evidence:
    """The evidence of a study or of a slice of it.

    Attributes:
        settings: content of study.json.
        expert: text of expert.json; "" if it does not exist.
        tables: the tables in all other files, by name. Each table has the columns `RUN`, and its
            rows are sorted by these columns.
    """

    settings: Mapping
    expert: str
    tables: Mapping[str, pd.DataFrame]

    @property
    def runs(self) -> pd.MultiIndex:
        """Arm and seed of every evaluated run."""
        return _runs(self.tables[GAMES]).unique()

    def lacking(self, study: Study) -> list[str]:
        """The arms of the study that lack results of some seeds, as `arm, arm: seeds 61, 67`."""
        arms: dict[tuple[int, ...], list[str]] = {}
        for arm in study.methods:
            seeds = [seed for seed in seeds_of(study, arm) if (arm, seed) not in self.runs]
            arms.setdefault(tuple(seeds), []).append(arm)
        return [
            f"{', '.join(names)}: seeds {', '.join(map(str, seeds))}"
            for seeds, names in arms.items()
            if seeds
        ]


def of_run(results: Path, study_file: Path) -> Evidence:
    """Evidence of a finished study or slice.

    Args:
        results: results/<study>.
        study_file: configs/studies/<study>.yaml.

    Raises:
        UserError: the runs differ in training precision, which changes the score of a seed by
            several percentage points; the study has no report yet; or an arm of the results is not
            in `study_file`.
    """
    rounds = sorted(results.glob("rl/*/*/*/summary.json"))
    dtypes = {json.loads(path.read_bytes()).get("train_dtype", "") for path in rounds}
    dtype = _one_dtype(dtypes, f"{results}: runs")
    if not (results / "report/report.html").is_file():
        raise UserError(f"{results}: no report/report.html; run the study first")
    logs = sorted(results.glob("rl/*/*/*/train_log.json"))
    fits = sorted(results.glob("credit_fit/*/*/*/train_log.json"))
    tables = {
        GAMES: merge_episodes([results / "report/episodes.parquet"]),
        TRAINING: read_logs(logs, fits).drop(columns=TIMINGS),
        FITS: read_fits(fits),
        STOPS: read_stops(logs),
        COLLAPSE: read_collapse(logs),
    }
    study, arms = load_study(study_file), set(tables[GAMES]["method"])
    if others := sorted(arms.difference(study.methods)):
        raise UserError(f"{results}: {', '.join(others)}: not in {study_file}")
    expert = results / "expert/summary.json"
    # Exclude runs of arms and seeds that are in the folder but not in this report.
    runs = _runs(tables[GAMES]).unique()
    return Evidence(
        comparison(study) | {"train_dtype": dtype, "recorded": _recorded(results, arms)},
        expert.read_text(encoding="utf-8") if expert.is_file() else "",
        {name: table[_runs(table).isin(runs)] for name, table in tables.items()},
    )


def _recorded(results: Path, arms: set[str]) -> dict:
    """All settings of the runs. The section `training` of an arm has only the changed keys."""
    whole = recorded_study(results).resolved()
    methods = {
        name: arm | {"training": changes(whole["training"], arm["training"])}
        for name, arm in whole["methods"].items()
        if name in arms
    }
    return {key: whole[key] for key in RECORDED} | {"methods": methods}


def merged(earlier: Evidence, further: Evidence) -> Evidence:
    """Merge the evidence of two slices of a study.

    Raises:
        UserError: the slices differ in precision, settings, games or experts, or in the results of
            a run that is in both slices.
    """
    _one_dtype({each.settings["train_dtype"] for each in (earlier, further)}, "slices")
    recorded = _same_settings(earlier.settings.get("recorded", {}), further.settings["recorded"])
    experts = [scripted_players(json.loads(each.expert or "{}")) for each in (earlier, further)]
    if not experts[0].equals(experts[1]):
        raise UserError(
            f"{EXPERT}: the results of scripted players differ from those of earlier slices"
        )
    dtype = earlier.settings["train_dtype"] or further.settings["train_dtype"]
    again = earlier.runs.intersection(further.runs)
    tables = {
        name: _joined(name, earlier.tables[name], further.tables[name], again)
        for name in further.tables
    }
    check_episodes(tables[GAMES])
    settings = further.settings | {"train_dtype": dtype, "recorded": recorded}
    return Evidence(settings, earlier.expert, tables)


def _same_settings(earlier: Mapping, further: Mapping) -> dict:
    """Merge the key `recorded` of two slices; UserError if their settings differ."""
    if not earlier:
        raise UserError(f"{SETTINGS}: contains no settings of the runs; publish all runs again")
    arms, more = earlier["methods"], further["methods"]
    both = arms.keys() & more.keys()
    first = {**earlier, "methods": {name: arms[name] for name in both}}
    second = {**further, "methods": {name: more[name] for name in both}}
    new, old = changes(first, second), changes(second, first)
    lines = [f"{key}: {new[key]}, but {old[key]} in the earlier slices" for key in new]
    if lines:
        raise UserError("\n".join(lines))
    return {**further, "methods": arms | more}


def _joined(
    name: str, earlier: pd.DataFrame, further: pd.DataFrame, again: pd.MultiIndex
) -> pd.DataFrame:
    """Merge a table of two slices; the rows of runs in both slices (`again`) must be equal."""
    table = pd.concat([earlier, further], ignore_index=True)
    second = table.index >= len(earlier)
    repeated = _runs(table).isin(again)
    for method, seed in again:
        mine = (table["method"] == method) & (table["seed"] == seed)
        first, other = (table[mine & half].reset_index(drop=True) for half in (~second, second))
        if not first.equals(other):
            raise UserError(
                f"{name}: {method}, seed {seed}: the results differ from those in earlier slices"
            )
    return table[~(second & repeated)].sort_values(RUN, kind="stable", ignore_index=True)


def _runs(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[RUN])


def _one_dtype(dtypes: set[str], what: str) -> str:
    """Return the only training precision, or "" if there is none; UserError if there are two."""
    dtypes = dtypes - {""}
    if len(dtypes) > 1:
        raise UserError(f"{what} were trained in {' and '.join(sorted(dtypes))}")
    return min(dtypes, default="")


def write(evidence: Evidence, tables: Path) -> None:
    """Write the evidence to docs/tables/<study>."""
    settings, arms = dict(evidence.settings), set(evidence.tables[GAMES]["method"])
    order = settings["order"] = [name for name in settings["order"] if name in arms]
    recorded = settings["recorded"]
    settings["methods"] = {name: settings["methods"][name] for name in order}
    # Omit the settings of arms that have no games.
    settings["recorded"] = recorded | {
        "methods": {name: recorded["methods"][name] for name in order}
    }
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (tables / SETTINGS).write_text(text + "\n", encoding="utf-8")
    if evidence.expert:
        (tables / EXPERT).write_text(evidence.expert, encoding="utf-8")
    evidence.tables[GAMES].to_parquet(tables / GAMES, index=False, **parquet.WRITE)
    write_compressed(evidence.tables[TRAINING], tables / TRAINING)
    if len(evidence.tables[FITS]):
        write_compressed(evidence.tables[FITS], tables / FITS)
    write_csv(evidence.tables[STOPS], tables / STOPS)
    if settings.get("collapse"):
        write_csv(evidence.tables[COLLAPSE], tables / COLLAPSE)


def read(tables: Path) -> Evidence:
    """Read the files written by `write`, including those of its earlier versions."""
    expert, absent = tables / EXPERT, {FITS: read_fits([]), COLLAPSE: read_collapse([])}
    logs = {
        name: _read_csv(tables / name) if (tables / name).is_file() else absent[name]
        for name in (TRAINING, FITS, STOPS, COLLAPSE)
    }
    return Evidence(
        json.loads((tables / SETTINGS).read_text(encoding="utf-8")),
        expert.read_text(encoding="utf-8") if expert.is_file() else "",
        {GAMES: merge_episodes([tables / GAMES])} | logs,
    )


def incomplete(tables: Path) -> bool:
    """Whether a folder has no tables yet, because slices of the study are missing."""
    return (tables / GAMES).is_file() and not (tables / "methods.csv").is_file()


def published(tables: Path) -> tuple[Inputs, pd.DataFrame]:
    """Read the report's inputs and the logs of fits from a study's published files."""
    evidence = read(tables)
    logs = evidence.tables[TRAINING].assign(**dict.fromkeys(TIMINGS, float("nan")))
    collapse = evidence.tables[COLLAPSE] if evidence.settings.get("collapse") else None
    logged = logs, evidence.tables[STOPS], collapse
    inputs = make_inputs(evidence.settings, tables / GAMES, *logged)
    return inputs, evidence.tables[FITS]


def copy_tuning(folders: list[Path], tables: Path, earlier: bool) -> None:
    """Write tuning.csv.gz: settings and validation scores of every tuning run and round.

    Args:
        folders: results/<study> of the tuning studies; each must contain a report.
        earlier: whether to keep the rows that are already published.

    Raises:
        UserError: two runs with the same settings have different scores.
    """
    parts = [pd.read_csv(tables / TUNING)] if earlier and (tables / TUNING).is_file() else []
    for folder in folders:
        study = recorded_study(folder)
        for name, method in study.methods.items():
            arm = method.model_dump(mode="json", exclude={"name", "label", "training"})
            training = study.training[name].model_dump(mode="json")
            dtype = {"train_dtype": study.model.train_dtype}
            settings = pd.json_normalize(dtype | arm | {"training": training}).iloc[0]
            row = settings.map(lambda each: json.dumps(each) if isinstance(each, list) else each)
            runs = pd.read_csv(folder / "report/tables/rounds_by_seed.csv")
            runs = runs[(runs["method"] == name) & (runs["panel"] == "validation")]
            parts.append(runs[[*RUN, "round", *TUNED]].assign(**row))
    tables.mkdir(parents=True, exist_ok=True)
    write_compressed(tuning(parts), tables / TUNING)


def tuning(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Merge the rows of several tuning runs into one sorted table."""
    # Round the means, because the last bit of a mean depends on which other seeds are in the
    # report. Convert the table to CSV and back, so that column types depend on all rows.
    rows = pd.concat(parts, ignore_index=True).round(dict.fromkeys(TUNED, 12))
    table = pd.read_csv(StringIO(rows.to_csv(index=False))).drop_duplicates()
    settings = sorted({*table} - {*RUN, "round", *TUNED})
    keys = ["method", *settings, "seed", "round"]
    twice = table[table.duplicated(keys)]
    if len(twice):
        method, seed = twice[RUN].iloc[0]
        raise UserError(
            f"{TUNING}: {method}, seed {seed}: runs with the same settings have different scores"
        )
    return table[[*RUN, "round", *TUNED, *settings]].sort_values(
        keys, key=lambda column: column if column.dtype.kind in "biuf" else column.astype(str)
    )


def _read_csv(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    return table.drop(columns="label", errors="ignore")


def write_compressed(table: pd.DataFrame, path: Path) -> None:
    """Write a compressed CSV file; equal tables give equal bytes."""
    text = table.to_csv(index=False, lineterminator="\n")
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
