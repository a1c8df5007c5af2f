"""Names of a study's figures and tables, derived from its settings."""

from collections.abc import Iterable, Mapping

from hgrpo.evaluation.designs import alpha_sweep, doses, factorial, fitted, trained, with_figure

TABLES = (
    *("methods", "scripted", "seeds", "against_reference", "against_sft"),
    *("sft_temperatures", "rounds", "rounds_by_seed", "best_rounds_for_the_record"),
    *("endpoints", "other_endpoints", "thresholds", "thresholds_by_seed", "seeds_needed"),
    *("task_types", "counts", "stops", "cost"),
)
RUNS = "runs"


def figure_names(config: Mapping, rounds: int) -> list[str]:
    """Names of the study's figures, in drawing order; `rounds` is the number of training rounds.

    `config` is from `hgrpo.stages.comparison.comparison`.
    """
    methods, learnt = config["methods"], trained(config["methods"])
    learns, has_untrained = bool(learnt), len(learnt) < len(methods)
    sweep = bool(alpha_sweep(methods))
    drawn = {
        "forest": (learns and has_untrained) or (config["reference"] in learnt and len(learnt) > 1),
        "alpha": sweep,
        **{f"axis_{axis['name']}": True for axis in config.get("axes", [])},
        "dose_response": bool(doses(methods)) and config["reference"] in methods,
        "factorial": factorial(methods, config["reference"]),
        "sft_temperatures": has_untrained,
        "task_types": True,
        "learning_curves": learns,
        "learning_by_play": learns,
        "equal_budget": learns,
        "thresholds": learns,
        "credit": learns,
        # Nothing is fitted after the last round, so this figure requires at least two rounds.
        "credit_last_round": rounds > 1 and bool(fitted(methods)),
        "protocol_comparison": learns,
        "alpha_diagnostics": sweep,
        "collapse": config.get("collapse", False),
        "turnrd": rounds > 1 and with_figure(methods, "turnrd"),
        "health": learns,
    }
    return [name for name, is_drawn in drawn.items() if is_drawn]


def run_figure(method: str, seed: int) -> str:
    """Name of a run's figure. These figures have their own folder, as there may be hundreds."""
    return f"{RUNS}/{method}_seed_{seed}"


def run_figures(config: Mapping, seeds: Iterable[int]) -> list[str]:
    """Names of the figures of single runs, in drawing order; `config` as in `figure_names`."""
    names = sorted(trained(config["methods"]), key=lambda name: name != config["reference"])
    return [run_figure(method, seed) for method in names for seed in sorted(seeds)]


def table_names(config: Mapping) -> list[str]:
    """Names of all tables; `config` as in `figure_names`."""
    design = factorial(config["methods"], config["reference"])
    gates = ["gates"] if config.get("gates") else []
    collapse = ["collapse"] if config.get("collapse") else []
    pairs = ["pairs"] if config.get("pairs") else []
    return [*TABLES, *collapse, *gates, *pairs, *(["factorial"] if design else [])]
