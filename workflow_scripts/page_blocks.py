"""Insert tables and figures of published studies into hand-written pages."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType

import markdown_gradients
import markdown_tables

from hgrpo.errors import UserError

_BLOCK = re.compile(
    r"(?P<head><!-- (?P<kind>\w+) (?P<study>\w+)(?: (?P<name>\w+))? -->)\n.*?<!-- end -->",
    re.DOTALL,
)
_ROW = re.compile(r"^(?P<name>\| [^|]*\(`(?P<method>\w+)`\) \|)[^|\n]*\|", re.MULTILINE)
# Maps the names of published figures to their alternative texts.
FIGURES = {
    "forest": "Paired differences",
    "learning_curves": "Learning curves",
    "learning_by_play": "Learning curves against trajectories and replies",
    "dose_response": "Endpoint and time to a threshold, by the credit's correlation with Oracle's",
    "thresholds": "Trajectories to a threshold",
    "sft_temperatures": "Sampling alone",
    "collapse": "Dependence of replies on their prompts",
    "axis_top_p": "Arms of the axis top-p",
    "axis_kl": "Arms of the axis KL",
    "axis_entropy": "Arms of the axis entropy",
    "norms_PPO": "Gradient norms by the standard deviation of returns, PPO",
    "norms_GRPO": "Gradient norms by the standard deviation of returns, GRPO",
    "closest": "Correlation with ground truth, and cost",
    "agreement_speed": "Arms by agreement with ground truth and by endpoint",
}
NOT_PUBLISHED = "*Not run yet: no results are published.*"
# A block in a page starts with <!-- results bakeoff --> and ends with <!-- end -->.
KINDS: dict[str, Callable[[markdown_tables.Tables], str]] = {
    "results": markdown_tables.results,
    "cost": markdown_tables.cost,
    "effects": markdown_tables.effects,
    "areas": markdown_tables.areas,
    "gates": markdown_tables.gates,
    "pairs": markdown_tables.pairs,
    "thresholds": markdown_tables.thresholds,
    "dose_response": markdown_tables.dose_response,
    "truth": markdown_tables.truth,
    "agreement_speed": markdown_tables.agreement_speed,
    "verdicts": markdown_tables.verdicts,
    "verdicts_sft": partial(markdown_tables.verdicts, baseline="fixed"),
    "verdict_cells": markdown_tables.verdict_cells,
    "slopes": lambda tables: markdown_tables.as_markdown(markdown_gradients.slopes(tables)),
    "dominance": lambda tables: markdown_tables.as_markdown(markdown_gradients.dominance(tables)),
}


def fill(
    page: str,
    studies: Mapping[str, markdown_tables.Tables],
    planned: Collection[str] = (),
    figures: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> str:
    """Rewrite every block between `<!-- kind study -->` and `<!-- end -->` of a page.

    `<!-- figure study name -->` starts a block with a figure of `FIGURES`, and
    `<!-- axis study name -->` a block with the table of an axis.

    Args:
        studies: maps each study to its published tables.
        planned: studies that may have no tables yet; their blocks then contain `NOT_PUBLISHED`.
        figures: maps each study to the names of its published figures.

    Raises:
        UserError: the kind or study of a block is unknown, or its table or figure is missing.
    """

    def made(match: re.Match) -> str:
        kind, study, name = match["kind"], match["study"], match["name"]
        known = name in FIGURES if kind == "figure" else (kind == "axis") == (name is not None)
        if not known or kind not in (*KINDS, "figure", "axis"):
            raise UserError(f"{match['head']}: no such table or figure")
        if study not in studies and study not in planned:
            raise UserError(f"{match['head']}: no such study")
        text = NOT_PUBLISHED
        if study in studies:
            text = _figure(match, figures) if kind == "figure" else _filled(match, studies[study])
        return f"{match['head']}\n{text}\n<!-- end -->"

    return _BLOCK.sub(made, page)


def _filled(match: re.Match, tables: markdown_tables.Tables) -> str:
    try:
        if match["kind"] == "axis":
            return markdown_tables.axis(tables, match["name"])
        return KINDS[match["kind"]](tables)
    except KeyError as error:
        raise UserError(f"{match['head']}: {error} is not published") from None


def _figure(match: re.Match, figures: Mapping[str, Collection[str]]) -> str:
    study, name = match["study"], match["name"]
    if name not in figures.get(study, ()):
        raise UserError(f"{match['head']}: the figure is not published")
    return f"![{FIGURES[name]}](figures/{study}/{name}.svg)"


def fill_rates(page: str, rates: Mapping[str, str]) -> str:
    """Write the rate of each method into the second cell of its table row.

    The first cell of the row contains the method's name in backticks and parentheses.

    Args:
        rates: maps methods to the text of their cells. The cells of all other methods get the text
            "not run".
    """

    def made(match: re.Match) -> str:
        return f"{match['name']} {rates.get(match['method'], 'not run')} |"

    return _ROW.sub(made, page)
