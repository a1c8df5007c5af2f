"""Which figures and tables a study has, known before there is anything to draw."""

from collections.abc import Iterable, Sequence

TABLES = (
    "methods",
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


def figure_names(trained: Sequence[str], untrained: bool, seeds: Iterable[int]) -> list[str]:
    """Names of all figures, in the order of the page.

    Args:
        trained: names of the arms that reinforcement learning changes.
        untrained: whether the study has the supervised policy as an arm.
        seeds: of the trained arms.
    """
    several = len(trained) + untrained > 1
    return [
        *(["forest"] if several else []),
        *(["sft_temperatures"] if untrained else []),
        "task_types",
        *(["learning_curves", "equal_budget", "credit"] if trained else []),
        *(["protocol_comparison", "health"] if trained else []),
        *(f"reward_{method}_seed_{seed}" for method in trained for seed in sorted(seeds)),
    ]
