"""The study `grid`, and what the stub of the stages writes of any study."""

import json
from pathlib import Path

from hgrpo.stages.order import STAGES, load
from hgrpo.study.study import load_study
from hgrpo.workflow.rules import StudyRules, flat

STUDY = {
    "name": "grid",
    # Text in braces is no wildcard.
    "description": "{two} arms and {method}",
    "env": "alfworld-laptop",
    "model": "tiny",
    "methods": ["SFTOnly", "flatGRPO", "Progressive"],
    "seeds": [11, 23],
    "rounds": 2,
}


def declare(root: Path, *runs: tuple[str, dict]) -> None:
    """Tell the stub of a checkout what jobs write in runs, each a study and its overrides."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, overrides in runs:
        study = load_study(root / f"configs/studies/{name}.yaml", overrides)
        of = StudyRules(study, "")
        for stage in STAGES:
            folder = load(stage).FOLDER
            head = f"/{folder}/" if folder else "/"
            written = [path.removeprefix(head) for path in flat(of.outputs(stage))]
            known = found.setdefault(name, {}).setdefault(stage, [])
            known += [path for path in written if path not in known]
    (root / "stub/outputs.json").write_text(json.dumps(found), encoding="utf-8")
