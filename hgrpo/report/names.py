"""The names of a study's figures and tables, which follow from its settings."""

from collections.abc import Iterable, Mapping

from hgrpo.evaluation.designs import alpha_sweep, factorial, with_figure

TABLES = (
    "methods",
    "scripted",
    "seeds",
    "against_reference",
    "against_sft",
    "mcnemar",
    "sft_temperatures",
    "rounds",
    "rounds_by_seed",
    "best_rounds_for_the_record",
    "task_types",
    "counts",
    "cost",
)
RUNS = "runs"


def figure_names(config: Mapping, rounds: int) -> list[str]:
    """Names of the study's figures, in drawing order.

    Args:
        config: the figures stage's settings (`hgrpo.workflow.stage_config`).
        rounds: number of rounds of the trained arms.
    """
    methods = config["methods"]
    trained = _trained(config)
    untrained = len(trained) < len(methods)
    sweep = bool(alpha_sweep(methods))
    # The first fit follows the first round, and the last round is followed by none.
    fitted = rounds > 1 and bool(with_figure(methods, "turnrd"))
    return [
        *(["forest"] if len(methods) > 1 else []),
        *(["alpha"] if sweep else []),
        *(["factorial"] if factorial(methods, config["reference"]) else []),
        *(["sft_temperatures"] if untrained else []),
        "task_types",
        *(["learning_curves", "equal_budget", "credit"] if trained else []),
        *(["protocol_comparison"] if trained else []),
        *(["alpha_diagnostics"] if sweep else []),
        *(["turnrd"] if fitted else []),
        *(["health"] if trained else []),
    ]


def run_figure(method: str, seed: int) -> str:
    """Name of a run's figure. Runs have their own folder: a large study has hundreds."""
    return f"{RUNS}/{method}_seed_{seed}"


def run_figures(config: Mapping, seeds: Iterable[int]) -> list[str]:
    """Names of the figures of single runs, in drawing order.

    Args:
        config: as for `figure_names`.
        seeds: seeds of the trained arms.
    """
    return [run_figure(method, seed) for method in _trained(config) for seed in sorted(seeds)]


def table_names(config: Mapping) -> list[str]:
    """Names of all tables; `config` is as for `figure_names`."""
    design = factorial(config["methods"], config["reference"])
    return [*TABLES, *(["factorial"] if design else [])]


def _trained(config: Mapping) -> list[str]:
    names = [name for name, arm in config["methods"].items() if arm.get("train", True)]
    return sorted(names, key=lambda name: name != config["reference"])
