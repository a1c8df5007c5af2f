"""What a published study's tables are computed from: games, training logs and settings.

These files are in docs/tables/<study>/:

games.parquet     won or lost, return and turns of every game of every evaluation
training.csv.gz   one row per optimiser batch of every run: play, dead groups, diagnostics
fits.csv.gz       one row per epoch of every fit between rounds, if an arm has any
study.json        the arms, the settings of the statistics, and the precision of training
"""

import gzip
import json
from pathlib import Path

import pandas as pd

from hgrpo.errors import UserError
from hgrpo.report.inputs import Inputs, make_inputs
from hgrpo.report.logs import read_fits, read_logs
from hgrpo.stages.comparison import comparison
from hgrpo.study.recorded import recorded_study
from hgrpo.study.study import load_study

GAMES, SETTINGS = "games.parquet", "study.json"
TRAINING, FITS = "training.csv.gz", "fits.csv.gz"
FILES = (GAMES, SETTINGS, TRAINING, FITS)
TUNING = "tuning.csv.gz"
# Seconds depend on the machine's other work.
TIMINGS = ["seconds", "collect_s", "credit_s", "update_s", "fit_s", "elapsed_s"]


def copy(results: Path, tables: Path, study_file: Path) -> None:
    """Copy a study's evidence beside its tables, of which methods.csv and seeds.csv are there.

    Args:
        results: results/<study>.
        study_file: configs/studies/<study>.yaml.

    Raises:
        UserError: some runs were trained in another precision, which moves a seed by points.
    """
    rounds = sorted(results.glob("rl/*/*/*/summary.json"))
    dtypes = {json.loads(path.read_bytes()).get("train_dtype", "") for path in rounds}
    if len(dtypes) > 1:
        raise UserError(f"{results}: runs were trained in {' and '.join(sorted(dtypes))}")
    (tables / GAMES).write_bytes((results / "report/episodes.parquet").read_bytes())
    settings, order = comparison(load_study(study_file)), _order(tables)
    settings["methods"] = {name: settings["methods"][name] for name in order}
    settings |= {"order": order, "train_dtype": min(dtypes, default="")}
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (tables / SETTINGS).write_text(text + "\n", encoding="utf-8")
    fits = sorted(results.glob("credit_fit/*/*/*/train_log.json"))
    logs = read_logs(sorted(results.glob("rl/*/*/*/train_log.json")), fits)
    # The folder may hold runs of further seeds, which this report does not show.
    seeds = pd.read_csv(tables / "seeds.csv")["seed"]
    shown = logs["method"].isin(order) & logs["seed"].isin(seeds)
    write(logs[shown].drop(columns=TIMINGS), tables / TRAINING)
    if fits:
        write(read_fits(fits), tables / FITS)


def copy_tuning(folders: list[Path], tables: Path) -> None:
    """Write tuning.csv.gz: settings and validation scores of every tuning run and round.

    Args:
        folders: results/<study> of the studies that tuned; their reports are read.
    """
    parts = []
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
            parts.append(runs[["method", "seed", "round", "success", "mean_return"]].assign(**row))
    tables.mkdir(parents=True, exist_ok=True)
    write(pd.concat(parts, ignore_index=True), tables / TUNING)


def published(tables: Path) -> tuple[Inputs, pd.DataFrame]:
    """What the report read, from a study's published files; and the logs of its fits."""
    settings = json.loads((tables / SETTINGS).read_text(encoding="utf-8"))
    logs = pd.read_csv(tables / TRAINING).assign(**dict.fromkeys(TIMINGS, float("nan")))
    stops = pd.read_csv(tables / "stops.csv")
    collapse = None
    if settings.get("collapse"):
        collapse = pd.read_csv(tables / "collapse.csv").drop(columns="label")
    inputs = make_inputs(settings, tables / GAMES, logs, stops.drop(columns="label"), collapse)
    fits = pd.read_csv(tables / FITS) if (tables / FITS).is_file() else read_fits([])
    return inputs, fits


def _order(tables: Path) -> list[str]:
    return list(dict.fromkeys(pd.read_csv(tables / "methods.csv")["method"]))


def write(table: pd.DataFrame, path: Path) -> None:
    """Write a compressed CSV file; the same table gives the same bytes."""
    text = table.to_csv(index=False, lineterminator="\n")
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
