"""What rules/sandbox.smk asks: the runs of each study, their settings and hashes of their code.

Only the names of studies are read when Snakemake starts. All else is read when a target of the
sandbox is asked for, so that planning an agents' study takes no longer.
"""

import functools
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hgrpo.atomic import atomic_file
from hgrpo.config.read import did_you_mean
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.sandbox.studies.pieces import PIECES, rule_classes
from hgrpo.sandbox.studies.study import SandboxStudy, read_study, recorded, resolve
from hgrpo.store.code import code_hash

RUN = r"[0-9a-f]{16}"
_STUDIES = "hgrpo.sandbox.studies"
# What each kind of job starts from.
_ROOTS = {
    "statistics": (f"{_STUDIES}.statistics",),
    "figures": (f"{_STUDIES}.figures",),
    "page": (f"{_STUDIES}.page",),
    "tiny": (f"{_STUDIES}.statistics", f"{_STUDIES}.figures"),
}
# Settings that permit a run, but change nothing in it.
_PERMITS = ("allow_degenerate",)
_UNREAD = {"base", "arms", "grid", "tiny", "packages"}
_OF_FIGURES, _OF_PAGE = {"figures"}, {"question", "inference"}


def run_code(piece: str, settings: Strict) -> str:
    """Hash (16 hex digits) of the code of a run: its piece, and the rules that it names alone."""
    rules = rule_classes(settings)
    modules = {rule.partition(":")[0] for rule in rules}
    return _hash([code_hash([PIECES[piece].root, *modules]), rules])


def run_id(piece: str, settings: Strict) -> str:
    """Name of a run's folder (16 hex digits): a hash of its settings and its code."""
    told = {key: value for key, value in recorded(settings).items() if key not in _PERMITS}
    return _hash([piece, told, run_code(piece, settings)])


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class SandboxRules:
    """The studies in a folder, and where their results go.

    Args:
        studies: the folder of study files.
        root: the folder of results.
        tiny: whether every arm is shortened to a few steps and two seeds.
    """

    def __init__(self, studies: Path | str, root: str, tiny: bool = False):
        self.folder, self.root, self.tiny = Path(studies), root, tiny
        self.names = sorted(path.stem for path in self.folder.glob("*.yaml"))
        # Runs of the studies that were read: the name of the folder -> study and arm.
        self._known: dict[str, tuple[str, str]] = {}

    @functools.cache  # noqa: B019  the object lives as long as the process
    def study(self, name: str) -> SandboxStudy:
        """A study by name.

        Raises:
            UserError: there is no such study, or its file is wrong.
        """
        if name not in self.names:
            raise UserError(f"{name}: no study of the sandbox{did_you_mean(name, self.names)}")
        return read_study(self.folder / f"{name}.yaml")

    @functools.cached_property
    def possible(self) -> list[str]:
        """Studies that can run here; one line on stderr names the others and what they lack."""
        lacking = {name: self.study(name).lacks for name in self.names}
        for name, packages in lacking.items():
            if packages and not self.tiny:
                said = f"sandbox: {name} is left out: not installed: {', '.join(packages)}"
                print(said, file=sys.stderr)
        return [name for name in self.names if not lacking[name]]

    @functools.cache  # noqa: B019
    def arms(self, name: str) -> dict[str, tuple[str, Strict]]:
        """Label -> the name of the run's folder, and its settings."""
        study = self.study(name)
        resolved = resolve(study, str(self.folder / f"{name}.yaml"), self.tiny)
        found = {label: (run_id(study.piece, own), own) for label, own in resolved.items()}
        for label, (run, _) in found.items():
            self._known.setdefault(run, (name, label))
        return found

    def run_cfg(self, run: str) -> str:
        """Piece and settings of a run, as JSON, by the name of its folder."""
        name, label = self._found(run)
        settings = recorded(self.arms(name)[label][1])
        return json.dumps({"piece": self.study(name).piece, "settings": settings})

    def code_of(self, run: str) -> str:
        """Hash of the code of a run, which the job compares with the code that it finds."""
        name, label = self._found(run)
        return run_code(self.study(name).piece, self.arms(name)[label][1])

    def updates(self, run: str) -> int:
        """How many updates a run takes, 0 if it trains nothing.

        The longest runs go first, so that no core idles while the last of them ends.
        """
        name, label = self._found(run)
        settings = self.arms(name)[label][1]
        return getattr(settings, "num_steps", 0) * getattr(settings, "inner_epochs", 1)

    def label(self, run: str) -> str:
        """What messages call a run: the first study and arm that have it."""
        return ": ".join(self._found(run))

    def _found(self, run: str) -> tuple[str, str]:
        """The first study and arm that have a run; studies that were asked for come first.

        Raises:
            UserError: none has it; its code or its settings have changed.
        """
        for name in self.names if run not in self._known else ():
            self.arms(name)
        if run not in self._known:
            raise UserError(f"{self.folders(run)}: no study has this run; its code has changed")
        return self._known[run]

    def folders(self, run: str) -> str:
        """The folder of a run."""
        return f"{self.root}/runs/{run}"

    def runs(self, name: str) -> dict[str, str]:
        """Label -> the folder of the arm's run."""
        return {label: self.folders(run) for label, (run, _) in self.arms(name).items()}

    def rows(self, name: str) -> list[str]:
        """The files of rows that a study needs, each once."""
        return [f"{folder}/rows.parquet" for folder in dict.fromkeys(self.runs(name).values())]

    def of_all(self, *paths: str) -> list[str]:
        """Files of all studies that can run here; `{}` in a path stands for the study."""
        return [f"{self.root}/{path}".format(name) for path in paths for name in self.possible]

    def cfg(self, name: str, kind: str) -> str:
        """What a job of a study is told, as JSON; `kind` is statistics or figures."""
        study = self.study(name)
        told = {"name": name, "study": self._told(study, kind), "runs": self.runs(name)}
        if kind == "figures":
            read = [figure.setting for figure in study.figures if figure.setting]
            told["settings"] = {
                label: {key: recorded(settings)[key] for key in read}
                for label, (_, settings) in self.arms(name).items()
            }
        return json.dumps(told)

    def tiny_cfg(self, name: str) -> str:
        """What the tiny pass over a study is told: its runs with their settings, and its tables."""
        runs = {run: recorded(settings) for run, settings in self.arms(name).values()}
        told = {kind: json.loads(self.cfg(name, kind)) for kind in ("statistics", "figures")}
        return json.dumps({"piece": self.study(name).piece, "runs": runs, **told})

    def page_cfg(self) -> str:
        """What the page is told of every study."""
        told = {name: self._told(self.study(name), "page") for name in self.possible}
        return json.dumps({"studies": told, "tiny": self.tiny})

    def code(self, kind: str) -> str:
        """Hash (16 hex digits) of the code of a kind of job that trains nothing."""
        return code_hash(_ROOTS[kind], skip=_registries())

    def noted(self, kind: str, name: str = "") -> str:
        """A file with the settings and the code of a job that trains nothing.

        As its content changes, the job runs again: Snakemake compares inputs alone.

        Args:
            kind: statistics, figures, page or tiny.
            name: the study; none for the page.
        """
        cfg = self._cfg(kind, name)
        path, text = (
            Path(self.root, "jobs", name, f"{kind}.json"),
            json.dumps([cfg, self.code(kind)]),
        )
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with atomic_file(path) as file:
                file.write_text(text, encoding="utf-8")
        return str(path)

    def _cfg(self, kind: str, name: str) -> str:
        if kind == "page":
            return self.page_cfg()
        return self.tiny_cfg(name) if kind == "tiny" else self.cfg(name, kind)

    def _told(self, study: SandboxStudy, kind: str) -> Mapping[str, Any]:
        """The study's file without what the job does not read."""
        left_out = (
            _UNREAD
            | {
                "statistics": _OF_FIGURES | _OF_PAGE,
                "figures": _OF_PAGE | {"pairs", "identical", "published", "also"},
                "page": _OF_FIGURES,
            }[kind]
        )
        told = study.model_dump(mode="json", exclude=left_out)
        # The model wants a question, which only the page reads.
        return {"question": ""} | told | {"arms": {label: {} for label in study.labels}}


def _registries() -> Sequence[str]:
    """Modules of pieces, which tables and figures import but do not run."""
    return [f"{_STUDIES}.pieces", f"{_STUDIES}.training"]
