"""Paths of files that several stages use; all paths are relative to results/<study>."""

from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.games.kinds import load

if TYPE_CHECKING:
    from hgrpo.study.study import Study

PANELS, TASKS = "assets/panels.json", "assets/tasks.tar.gz"
BASE = {
    "base": "base/model.safetensors",
    "base_companions": "base/companions.tar.gz",
    "base_summary": "base/summary.json",
}
SFT_ADAPTER = "sft/adapter"
# Untrained arms are evaluated only once. The folder of the evaluation is named after this seed.
EVERY_SEED = 0


def round_folder(stage: str, method: str, seed: int, round: int) -> str:
    """Folder of an arm's job; `stage` is the folder name, such as rl, eval or credit_fit."""
    return f"{stage}/{method}/seed_{seed}/round_{round}"


def downloads(study: "Study") -> bool:
    """Whether the study's environment downloads data files."""
    return any(file.made for file in load(study.env.name).user_files(study.env))


def data_files(study: "Study") -> dict[str, str]:
    """The list of downloaded data files, as an input of a stage; empty if there are none."""
    return {"data": "data/files.json"} if downloads(study) else {}


def reference_of(study: "Study") -> str:
    """Name of the reference arm; raises UserError if the run does not include it."""
    name = study.config.reference
    if not study.has_reference:
        raise UserError(
            f"methods: {', '.join(study.methods)}: this target requires rollouts or policies of "
            f"the reference, {name}; add it to the methods"
        )
    return name


def policy_folder(method: str, seed: int, round: int) -> str:
    """Folder of an arm's policy after a round; for round 0, the folder of the SFT policy."""
    return f"{round_folder('rl', method, seed, round)}/adapter" if round else SFT_ADAPTER


def policy_files(study: "Study", folder: str, name: str = "policy") -> dict[str, str]:
    """Map `name` to a policy's weights file, and `<name>_architecture` to its config file."""
    files = ("adapter_model.safetensors", "adapter_config.json")
    weights, card = files if study.model.adapt == "lora" else ("model.safetensors", "config.json")
    return {name: f"{folder}/{weights}", f"{name}_architecture": f"{folder}/{card}"}


def fitted_files(study: "Study", method: str, seed: int, round: int) -> dict[str, list[str]]:
    """Files of the credit fit that a round uses; empty lists if the round uses none."""
    arm = study.methods[method]
    fits = arm.train and arm.credit.declared.fits and round > 1
    folder = round_folder("credit_fit", method, seed, round - 1)
    return {
        "fitted": [f"{folder}/model.safetensors"] if fits else [],
        "fitted_card": [f"{folder}/model.json"] if fits else [],
    }


def seeds_of(study: "Study", method: str) -> list[int]:
    """Seeds of an arm's runs; only `EVERY_SEED` for untrained arms, which are evaluated once."""
    return study.config.seeds if study.methods[method].train else [EVERY_SEED]


def runs(study: "Study") -> list[tuple[str, int, int]]:
    """List all evaluations as (method, seed, round); untrained arms are evaluated in round 0."""
    return [
        (method, seed, round)
        for method, arm in study.methods.items()
        for seed in seeds_of(study, method)
        for round in (range(1, study.config.rounds + 1) if arm.train else [0])
    ]


def trained_rounds(study: "Study") -> list[tuple[str, int, int]]:
    """List all rounds of reinforcement learning as (method, seed, round)."""
    return [(method, seed, round) for method, seed, round in runs(study) if round]


def round_files(study: "Study", name: str) -> list[str]:
    """Paths of the file `name` in all trained rounds."""
    return [f"{round_folder('rl', *run)}/{name}" for run in trained_rounds(study)]


def fits(study: "Study") -> list[tuple[str, int, int]]:
    """List all credit fits as (method, seed, round); there is no fit after the last round."""
    return [
        (method, seed, round)
        for method, seed, round in trained_rounds(study)
        if study.methods[method].credit.declared.fits and round < study.config.rounds
    ]


def fit_logs(study: "Study") -> list[str]:
    """Paths of the logs of all credit fits."""
    return [
        f"{round_folder('credit_fit', method, seed, round)}/train_log.json"
        for method, seed, round in fits(study)
    ]


def truth_files(study: "Study", name: str) -> list[str]:
    """Paths of the file `name` for all rounds with ground truth."""
    rounds = study.config.truth.after_rounds if study.config.truth else []
    return [f"truth/round_{round}/{name}" for round in rounds]


def gradient_rounds(study: "Study") -> list[tuple[str, int, int]]:
    """List all policies whose gradients are measured, as (method, seed, round)."""
    rounds = study.config.gradients.after_rounds if study.config.gradients else []
    return [
        (method, seed, round)
        for method, arm in study.methods.items()
        for seed in study.config.seeds
        for round in rounds
        if arm.train
    ]


def gradient_files(study: "Study", name: str) -> list[str]:
    """Paths of the file `name` for all policies whose gradients are measured."""
    return [f"{round_folder('gradients', *run)}/{name}" for run in gradient_rounds(study)]


def gradient_evaluations(study: "Study") -> list[str]:
    """Paths of the evaluation summaries that the gradients page shows."""
    gradients = study.config.gradients
    if not (gradients and gradients.with_validation):
        return []
    return [
        f"{round_folder('eval', *run)}/summary.json"
        for run in runs(study)
        if run[-1] in gradients.after_rounds
    ]


def episodes(study: "Study", methods: list[str] | None = None) -> list[str]:
    """Paths of the episodes of all evaluations, or only of the evaluations of `methods`."""
    return [
        f"{round_folder('eval', method, seed, round)}/episodes.parquet"
        for method, seed, round in runs(study)
        if methods is None or method in methods
    ]
