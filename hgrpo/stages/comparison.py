"""Settings and input files that are shared by the stages figures, report and paper."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.evaluation.settings import STATISTICS
from hgrpo.stages.files import fit_logs, round_files
from hgrpo.stages.paths import file

if TYPE_CHECKING:
    from hgrpo.study.study import Study

# Keys of `training` that are listed for every arm, because studies vary them between arms.
_FACTORS = {"lr", "rollouts_per_task"}


@dataclass(frozen=True, kw_only=True)
class Results:
    """Files with the results of a study's runs."""

    episodes: Path = file("episodes", "merged episodes.parquet")
    train_logs: list[Path] = file("logs", "train_log.json of every round", True, True)
    fits: list[Path] = file("fits", "train_log.json of every fit between rounds", True, True)


def results(study: "Study") -> dict:
    """The input files for `Results`."""
    return {
        "episodes": "report/episodes.parquet",
        "logs": round_files(study, "train_log.json"),
        "fits": fit_logs(study),
    }


def comparison(study: "Study") -> dict:
    """Settings of the statistics, the reference arm, and all arms in the order of the study.

    `step_trajectories` is the number of training trajectories per step of each trained arm.
    Optional keys are `collapse` (true) if a trained arm measures collapse, `axes` if at least two
    arms of an axis run, and `mine` if the study contains the user's own arms.
    """
    # List a training key for all arms if one of the arms changes it, so that they can be compared.
    keys = _FACTORS.union(*(method.training for method in study.methods.values()))
    measured = any(
        method.train and study.training[name].collapse for name, method in study.methods.items()
    )
    return {
        **({"collapse": True} if measured else {}),
        **({"axes": axes} if (axes := _axes(study)) else {}),
        **({"mine": study.config.mine} if study.config.mine else {}),
        **study.config.evaluation.model_dump(mode="json", include=STATISTICS),
        # A list instead of a mapping, because JSON with sorted keys loses the order of the arms.
        "order": list(study.methods),
        "reference": study.config.reference,
        "step_trajectories": study.step_trajectories,
        "methods": {
            name: method.model_dump(mode="json", exclude={"training"})
            | {"label": method.full_label}
            | {"training": study.training[name].model_dump(mode="json", include=keys)}
            for name, method in study.methods.items()
        },
    }


def _axes(study: "Study") -> list[dict]:
    """The axes with at least two running arms, in the order of the study's file."""
    rows = []
    for name, arms in study.axis_arms.items():
        axis = study.config.axes[name]
        run = [(value, arm) for value, arm in arms.items() if arm in study.methods]
        if len(run) > 1:
            label = axis.label or name
            rows.append({"name": name, "label": label, "key": axis.key, "arms": run})
    return rows
