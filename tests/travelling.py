"""Results of a small study as two people have them, and the way from one to the other."""

import json
from dataclasses import dataclass
from pathlib import Path

from places import PROJECT

from hgrpo.study.study import Study, load_study
from hgrpo.workflow.exchange.belongs import check_belongs
from hgrpo.workflow.exchange.imports import Import
from hgrpo.workflow.exchange.manifest import Manifest, exchanged_jobs
from hgrpo.workflow.exchange.pack import pack, read_manifest, unpack
from hgrpo.workflow.reuse import sha256


def small_study(**overrides) -> Study:
    """The study smoke with two arms and a seed."""
    chosen = {"methods": "SFTOnly,Progressive", "seeds": "11"}
    return load_study(PROJECT / "configs/studies/smoke.yaml", chosen | overrides)


def write_results(results: Path, said: str, start: bool = True) -> None:
    """Results of the arms and the start; `said` stands for seconds, which no two runs share."""
    for job in exchanged_jobs(small_study(), results, start):
        for path in map(Path, job.outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                json.dumps({"of": str(path.relative_to(results)), "said": said}), encoding="utf-8"
            )


@dataclass(frozen=True)
class TwoPlaces:
    """The results/<study> of two people: there they are finished, here there are none."""

    there: Path
    here: Path
    archive: Path

    def give(self) -> Manifest:
        """Export there, and import here; return what the archive says of itself."""
        study = small_study()
        pack(study, exchanged_jobs(study, self.there, True), self.there, self.archive)
        manifest = read_manifest(self.archive)
        jobs = exchanged_jobs(study, self.here, True)
        check_belongs(self.archive, manifest, study, jobs, self.here)
        unpack(self.archive, manifest, self.here)
        return manifest


def two_places(root: Path) -> TwoPlaces:
    """Two people below `root`."""
    there, here = root / "there/results/smoke", root / "here/results/smoke"
    write_results(there, "theirs")
    here.mkdir(parents=True)
    return TwoPlaces(there, here, root / "ben.tar")


def imported_round(results: Path, folder: str) -> None:
    """Let a round's folder below results/<study> hold a summary that a colleague's archive gave."""
    summary = results / folder / "summary.json"
    summary.parent.mkdir(parents=True)
    summary.write_text("{}", encoding="utf-8")
    files = {f"{folder}/summary.json": sha256(summary)}
    record = Import(archive="ben.tar", revision=None, version=None, made={}, files=files)
    (results / "imports").mkdir()
    (results / "imports/ben.json").write_text(record.model_dump_json(), encoding="utf-8")
