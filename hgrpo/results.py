"""Load a study's results as pandas tables, for notebooks and scripts.

from hgrpo import results

study = results.load("results/bakeoff")
study.table("against_reference").sort_values("difference")
study.episodes().groupby(["method", "task_type"])["success"].mean()
study.latex("methods", ["label", "success", "lower", "upper"])
study.turns("Progressive", seed=11, round=3).nlargest(10, "credit")
study.train_log("flatGRPO", seed=11).plot("batch", "success_rate")
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from hgrpo import parquet
from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError, did_you_mean, one_line
from hgrpo.evaluation.outcomes import GREEDY, TEST
from hgrpo.report.export_comparison import study_digest
from hgrpo.report.latex import tabular

# A training round depends on these sections of a study, and on the settings of its method.
_PLAY = {"engine", "env", "model", "training"}
_RATE = (
    "(.*_)?success|.*_share|(baseline_)?endpoint|(endpoint_)?(lower|upper)|score|mean"
    "|difference|standard_error|minimum_detectable_effect|probability_of_improvement|repeats_alike"
)


@dataclass(frozen=True)
class Results:
    """The results of one study; each method reads a file and returns a new table.

    Attributes:
        folder: results/<study>.
        config: the resolved study, recorded by its first job.
    """

    folder: Path
    config: dict

    @property
    def tables(self) -> list[str]:
        """Names of the report's tables."""
        return sorted(path.stem for path in (self.folder / "report/tables").glob("*.csv"))

    def table(self, name: str, percent: bool = False) -> pd.DataFrame:
        """A table of the report, such as `methods`, `rounds` or `cost`; it may be empty.

        Args:
            percent: whether to multiply rates, differences and scores by 100, as in the report.

        Raises:
            UserError: the table does not exist or is damaged, or config.yaml has changed since the
                report was made.
        """
        self._check_report()
        path = self.folder / f"report/tables/{name}.csv"
        if not path.is_file():
            raise UserError(f"{path}: no such table{did_you_mean(name, self.tables)}")
        try:
            table = pd.read_csv(path)
        except pd.errors.EmptyDataError:
            return pd.DataFrame()
        except ValueError as error:
            raise UserError(f"{path}: the file is damaged ({one_line(error)})") from None
        return table.assign(**{key: 100 * table[key] for key in _rates(name, table) if percent})

    def latex(self, name: str, columns: Sequence[str], digits: int = 1) -> str:
        """Format columns of a table of the report as a LaTeX `tabular` with booktabs rules.

        Rates are in percent, as in the report.

        Args:
            digits: number of decimals of rates, differences and scores. Other fractions have three.

        Raises:
            UserError: there is no such table or column.
        """
        table = self.table(name, percent=True)
        for column in columns:
            if column not in table.columns:
                nearest = did_you_mean(column, list(table.columns))
                raise UserError(f"{name}: the table has no column {column}{nearest}")
        chosen = table[list(columns)]
        form = f"{{:.{digits}f}}".format
        rates = {key: chosen[key].map(form, "ignore") for key in _rates(name, chosen)}
        return tabular(chosen.assign(**rates))

    def episodes(
        self,
        panel: str | None = TEST,
        round: int | Literal["last"] | None = "last",
        temperature: float | None = GREEDY,
    ) -> pd.DataFrame:
        """Evaluated episodes of every arm; docs/artefacts.md lists the columns.

        The defaults select the episodes on which the report's tables are based: greedy play on the
        test panel after each arm's last round. Do not average over panels, rounds or temperatures;
        pass None only to group by them.

        Args:
            panel: `test` or `validation`; None for both.
            round: a number; `last` for each arm's last round (0 if untrained); None for all.
            temperature: 0 for greedy play; None for all.

        Raises:
            UserError: no episode matches, or config.yaml has changed since the report was made.
        """
        self._check_report()
        episodes = self._parquet("report/episodes.parquet")
        if round == "last":
            last = episodes.groupby("method")["round"].transform("max")
            episodes, round = episodes[episodes["round"] == last], None
        for name, value in (("panel", panel), ("round", round), ("temperature", temperature)):
            known = sorted(episodes[name].unique())
            if value is not None and value not in known:
                others = ", ".join(map(str, known))
                raise UserError(f"there are no episodes of {name} {value}, only of {others}")
            episodes = episodes if value is None else episodes[episodes[name] == value]
        return episodes.reset_index(drop=True)

    def turns(self, method: str, seed: int, round: int) -> pd.DataFrame:
        """Every turn played in a round, with reward, progress, credit and advantage.

        Raises:
            UserError: there is no such round.
        """
        return self._of_round(method, seed, round, "turns.parquet")

    def sequences(self, method: str, seed: int, round: int) -> pd.DataFrame:
        """Every trajectory played in a round, with its tokens.

        Raises:
            UserError: there is no such round.
        """
        return self._of_round(method, seed, round, "sequences.parquet")

    def train_log(self, method: str, seed: int) -> pd.DataFrame:
        """One row per training step of a run, with the additional columns `round` and `batch`.

        Raises:
            UserError: the run has no finished round, a log is damaged, or the study's settings have
                changed since a round was played.
        """
        home = self._run(method, seed)
        logs = {number: self._log(home, number, method) for number in self._rounds(home)}
        if not logs:
            raise UserError(f"{home}: the run has no finished round")
        parts = [pd.DataFrame(log["rows"]).assign(round=number) for number, log in logs.items()]
        table = pd.concat(parts, ignore_index=True)
        return table.assign(batch=range(1, len(table) + 1))

    def _rounds(self, home: Path) -> list[int]:
        most = self.config.get("rounds", float("inf"))
        numbers = {int(path.parent.name[6:]) for path in home.glob("round_*/train_log.json")}
        return sorted(number for number in numbers if number <= most)

    def _log(self, home: Path, number: int, method: str) -> dict:
        path = home / f"round_{number}/train_log.json"
        try:
            log = json.loads(path.read_bytes())
            config = log["config"]
            played = config["method"] | {key: config[key] for key in _PLAY & config.keys()}
            pd.DataFrame(log["rows"])
        except (ValueError, LookupError, TypeError) as error:
            raise UserError(f"{path}: the file is not a train log ({one_line(error)})") from None
        now = {key: self.config.get(key) for key in _PLAY} | self.config["methods"][method]
        # The expert's settings do not affect a training round.
        played, now = (
            {**each, "env": {**(each.get("env") or {}), "expert": None}} for each in (played, now)
        )
        differ = [key for key in played.keys() & now.keys() - {"label"} if played[key] != now[key]]
        if differ:
            raise UserError(
                f"{path}: {', '.join(sorted(differ))}: the round's settings differ from those in "
                f"{self.folder / 'config.yaml'}; run the study again"
            )
        return log

    def _check_report(self) -> None:
        path = self.folder / "report/methods_comparison.json"
        if not path.is_file():
            return
        try:
            studies = {arm.get("_study") for arm in json.loads(path.read_bytes()).values()}
        except (ValueError, AttributeError) as error:
            raise UserError(f"{path}: the file is damaged ({one_line(error)})") from None
        # Older reports do not record the study.
        if studies - {None, study_digest(self.config)}:
            raise UserError(
                f"{path}: config.yaml has changed since the report was made; run the study again"
            )

    def _of_round(self, method: str, seed: int, round: int, name: str) -> pd.DataFrame:
        run = self._run(method, seed)
        if round not in (known := self._rounds(run)):
            only = ", ".join(map(str, known)) or "none"
            raise UserError(f"{run}: the run has no round {round}, only {only}")
        self._log(run, round, method)
        return self._parquet(f"{run.relative_to(self.folder)}/round_{round}/{name}")

    def _run(self, method: str, seed: int) -> Path:
        present = {path.name for path in self.folder.glob("rl/*")}
        trained = sorted(present.intersection(self.config["methods"]))
        arm = self.folder / f"rl/{method}"
        if method not in trained:
            raise UserError(f"{arm}: there is no such trained arm{did_you_mean(method, trained)}")
        if not (arm / f"seed_{seed}").is_dir():
            raise UserError(f"{arm}: the arm has no seed {seed}, only {_numbers(arm, 'seed_')}")
        return arm / f"seed_{seed}"

    def _parquet(self, name: str) -> pd.DataFrame:
        path = self.folder / name
        try:
            return pd.read_parquet(path, **parquet.READ)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: the file is damaged ({one_line(error)})") from None


def _rates(name: str, table: pd.DataFrame) -> list[str]:
    # In the threshold tables, only this column is a rate. The others are counts of trajectories.
    pattern = "threshold" if name.startswith("thresholds") else _RATE
    numbers = table.select_dtypes("number").columns
    return [column for column in numbers if re.fullmatch(pattern, column)]


def _numbers(folder: Path, prefix: str) -> str:
    numbers = sorted(int(path.name.removeprefix(prefix)) for path in folder.glob(f"{prefix}*"))
    return ", ".join(map(str, numbers)) or "none"


def load(folder: Path | str) -> Results:
    """The results in a folder such as results/bakeoff.

    Raises:
        UserError: the folder has no config.yaml.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").is_file():
        raise UserError(f"{folder}: contains no config.yaml; expected a folder results/<study>")
    return Results(folder, read_yaml(folder / "config.yaml"))
