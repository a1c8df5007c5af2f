"""Why a study measures no gradients, and what must be set so that it does."""

from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.study.study import Study


def why_no_gradients(study: Study) -> str:
    """One line for the target `gradients` of a study that has none to measure."""
    name = study.config.name
    if not study.step_trajectories:
        return (
            f"{name}: none of its methods is trained ({', '.join(study.methods)}), and gradients "
            "are those of trained arms; add one to methods"
        )
    section = f"gradients: {{after_rounds: [0, {study.config.rounds}]}}"
    said = (
        f"{name}: no section `gradients`; `{section}` in its file measures the SFT policy and the "
        "last ones"
    )
    tasks, wanted = study.env.panels.analysis, GradientsConfig().groups
    if tasks < wanted:
        said += (
            f"; it plays {wanted} tasks unless `groups` says less, but env {study.config.env!r} "
            f"has panels.analysis: {tasks}, so raise that too"
        )
    return said
