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
    """Return the settings of the statistics, the name of the reference arm, and all arms.

    `step_trajectories` maps each trained arm to its number of training trajectories per step.
    Three keys are optional: `collapse` is true if a trained arm measures collapse, `axes` lists the
    axes with at least two arms in the run, and `mine` lists the user's own arms.
    """
    # If one arm changes a training key, list the key for all arms, so that they can be compared.
    keys = _FACTORS.union(*(method.training for method in study.methods.values()))
    measured = any(
        method.train and study.training[name].collapse for name, method in study.methods.items()
    )
    return {
        **({"collapse": True} if measured else {}),
        **({"axes": axes} if (axes := _axes(study)) else {}),
        **({"mine": study.config.mine} if study.config.mine else {}),
        **study.config.evaluation.model_dump(mode="json", include=STATISTICS),
        # JSON is written with sorted keys, so the mapping `methods` loses the order of the arms.
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
    """The axes with at least two arms in the run, in the order of the study's file."""
    rows = []
    for name, arms in study.axis_arms.items():
        axis = study.config.axes[name]
        run = [(value, arm) for value, arm in arms.items() if arm in study.methods]
        if len(run) > 1:
            label = axis.label or name
            rows.append({"name": name, "label": label, "key": axis.key, "arms": run})
    return rows
