"""Runs of the sandbox studies, their settings and their code hashes, for rules/sandbox.smk.

When Snakemake starts, only the names of the sandbox studies are read. The content of a study is
read when it is needed, so that runs of other studies start quickly.
"""

import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from hgrpo.atomic import atomic_file
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError, did_you_mean
from hgrpo.sandbox.studies.pieces import PIECES, rule_classes
from hgrpo.sandbox.studies.study import SandboxStudy, read_study, recorded, resolve
from hgrpo.store.code import code_hash

RUN = r"[0-9a-f]{16}"
_STUDIES = "hgrpo.sandbox.studies"
# The entry modules of each kind of job.
_ROOTS = {
    "statistics": (f"{_STUDIES}.statistics",),
    "figures": (f"{_STUDIES}.figures",),
    "page": (f"{_STUDIES}.page",),
    "tiny": (f"{_STUDIES}.statistics", f"{_STUDIES}.figures"),
}
# Settings that permit a run but do not affect its results.
_PERMITS = ("allow_degenerate",)
# `_UNREAD` lists keys of a study's file that no job reads. `_UNREAD_BY` lists more by kind of job.
_UNREAD = {"base", "arms", "grid", "tiny", "packages"}
_UNREAD_BY = {
    "statistics": {"figures", "question", "inference"},
    "figures": {"question", "inference", "pairs", "identical", "published", "also"},
    "page": {"figures"},
}
# These modules register experiments. The code hash of jobs other than runs excludes them.
_REGISTRIES = (f"{_STUDIES}.pieces", f"{_STUDIES}.training")


def run_code(piece: str, settings: Strict) -> str:
    """Hash (16 hex digits) of a run's code: its experiment and its configured update rules."""
    rules = rule_classes(settings)
    modules = {rule.partition(":")[0] for rule in rules}
    return _hash([code_hash([PIECES[piece].root, *modules]), rules])


def run_id(piece: str, settings: Strict) -> str:
    """Name of a run's folder: a hash (16 hex digits) of its settings and its code."""
    values = {key: value for key, value in recorded(settings).items() if key not in _PERMITS}
    return _hash([piece, values, run_code(piece, settings)])


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class SandboxRules:
    """The studies in a folder, and the paths of their results.

    Args:
        studies: the folder of study files.
        root: the folder of results.
        tiny: whether to shorten every arm to a few steps and two seeds.
    """

    def __init__(self, studies: Path | str, root: str, tiny: bool = False):
        self.folder, self.root, self.tiny = Path(studies), root, tiny
        self.names = sorted(path.stem for path in self.folder.glob("*.yaml"))
        # Maps the name of a run's folder to (study, arm). It contains only studies read so far.
        self._runs: dict[str, tuple[str, str]] = {}

    @functools.cache  # noqa: B019  the object lives as long as the process
    def study(self, name: str) -> SandboxStudy:
        """A study by name; UserError if it does not exist or its file is invalid."""
        if name not in self.names:
            raise UserError(f"{name}: no such sandbox study{did_you_mean(name, self.names)}")
        return read_study(self.folder / f"{name}.yaml")

    @functools.cached_property
    def possible(self) -> list[str]:
        """Studies whose packages are installed; a line on stderr reports each skipped study."""
        lacking = {name: self.study(name).lacks for name in self.names}
        for name, packages in lacking.items():
            if packages and not self.tiny:
                line = f"sandbox: skipping {name}: not installed: {', '.join(packages)}"
                print(line, file=sys.stderr)
        return [name for name in self.names if not lacking[name]]

    @functools.cache  # noqa: B019
    def arms(self, name: str) -> dict[str, tuple[str, Strict]]:
        """Map each arm's label to a pair: the name of the run's folder, and the settings."""
        study = self.study(name)
        resolved = resolve(study, str(self.folder / f"{name}.yaml"), self.tiny)
        arms = {label: (run_id(study.piece, arm), arm) for label, arm in resolved.items()}
        for label, (run, _) in arms.items():
            self._runs.setdefault(run, (name, label))
        return arms

    def updates(self, run: str) -> int:
        """Number of updates of a run. It is the run's priority, so that long runs start first."""
        _, settings = self._arm(run)
        return getattr(settings, "num_steps", 0) * getattr(settings, "inner_epochs", 1)

    def label(self, run: str) -> str:
        """Name of the first study and arm that contain this run, for messages."""
        self._arm(run)
        return ": ".join(self._runs[run])

    def _arm(self, run: str) -> tuple[str, Strict]:
        """Experiment and settings of a run; UserError if no study contains the run any more."""
        for name in self.names if run not in self._runs else ():
            self.arms(name)
        if run not in self._runs:
            raise UserError(f"{self.folders(run)}: the code has changed, and no study has this run")
        name, label = self._runs[run]
        return self.study(name).piece, self.arms(name)[label][1]

    def folders(self, run: str) -> str:
        """The folder of a run."""
        return f"{self.root}/runs/{run}"

    def rows(self, name: str) -> list[str]:
        """Paths of rows.parquet for all distinct runs of a study."""
        runs = dict.fromkeys(run for run, _ in self.arms(name).values())
        return [f"{self.folders(run)}/rows.parquet" for run in runs]

    def of_all(self, *paths: str) -> list[str]:
        """The paths for every study in `possible`; `{}` is replaced by the name of the study."""
        return [f"{self.root}/{path}".format(name) for path in paths for name in self.possible]

    @functools.cache  # noqa: B019
    def job(self, kind: str, name: str = "") -> str:
        """Write a job's settings and code hash to a file, and return its path.

        As an input of the rule, the file triggers a rerun when its content changes.

        Args:
            kind: run, statistics, figures, page or tiny.
            name: the run or the study; "" for the page.
        """
        if kind == "run":
            code = run_code(*self._arm(name))
        else:
            code = code_hash(_ROOTS[kind], skip=_REGISTRIES)
        path = Path(self.root, "jobs", name, f"{kind}.json")
        text = json.dumps(self.settings(kind, name) | {"code": code})
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with atomic_file(path) as file:
                file.write_text(text, encoding="utf-8")
        return str(path)

    def settings(self, kind: str, name: str = "") -> dict[str, Any]:
        """Settings of a job; takes the same arguments as `job`."""
        if kind == "run":
            piece, settings = self._arm(name)
            return {"piece": piece, "settings": recorded(settings)}
        if kind == "page":
            studies = {each: _part(self.study(each), kind) for each in self.possible}
            return {"studies": studies, "tiny": self.tiny}
        study, arms = self.study(name), self.arms(name)
        if kind == "tiny":
            runs = {run: recorded(settings) for run, settings in arms.values()}
            tables = {each: self.settings(each, name) for each in ("statistics", "figures")}
            return {"piece": study.piece, "runs": runs, **tables}
        job = {"name": name, "study": _part(study, kind)}
        job["runs"] = {label: self.folders(run) for label, (run, _) in arms.items()}
        if kind == "figures":
            keys = [figure.setting for figure in study.figures if figure.setting]
            job["settings"] = {
                label: {key: recorded(settings)[key] for key in keys}
                for label, (_, settings) in arms.items()
            }
        return job


def _part(study: SandboxStudy, kind: str) -> dict[str, Any]:
    """The content of the study's file without the keys that the job does not read."""
    content = study.model_dump(mode="json", exclude=_UNREAD | _UNREAD_BY[kind])
    # The pydantic model requires `question`, although only jobs of kind "page" use it.
    return {"question": ""} | content | {"arms": {label: {} for label in study.labels}}
