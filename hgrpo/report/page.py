"""Render report.html, a self-contained page with the findings first and then the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pandas as pd
import yaml

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.endpoint import endpoint_name
from hgrpo.evaluation.gates import FAILED
from hgrpo.evaluation.power import MOST_SEEDS
from hgrpo.evaluation.statistics import FEWEST_SEEDS
from hgrpo.report import words
from hgrpo.report.arms import Arms
from hgrpo.report.cautions import cautions, published_spread
from hgrpo.report.credit_rows import credit_pictures, own_pictures
from hgrpo.report.endpoint_words import MEASURES, amount, endpoint_phrase, over_budget
from hgrpo.report.findings import Answer, answer
from hgrpo.report.inputs import Inputs
from hgrpo.report.page_rows import beside, ended_runs, gate_rows, thresholds, verdict_on_gates
from hgrpo.report.rerun import command, target_command, with_more_seeds
from hgrpo.report.style import read_index
from hgrpo.report.svg import inline, page_environment
from hgrpo.report.tables import cost, counts, logged_extras, scripted_players
from hgrpo.report.truth_section import SHOWN, truth_tables

# The first table plots differences on an axis from -x to x. x is one of these values, or 1.
_LIMITS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75)
SYMBOLS = {"better": "▲", "worse": "▼", "inconclusive": "◇"}


@dataclass
class Page:
    """Content of the page.

    Attributes:
        figures: output folder of `draw_all`.
        study_config: the resolved study; printed on the page, except for its provenance.
        left_out: games or trajectories omitted, or kept with a note, as (stage, reason, count).
        overridden: values of the settings overridden on the command line, by dotted key.
        finished: date at which training ended; "" if unknown.
        truth: output folder of `credit_agreement`, if it has run on rollouts with ground truth.
        supervised: the supervised policy from which all arms start; "" if not recorded.
        cautions: sentences of `arm_cautions`.
    """

    study: str
    description: str
    inputs: Inputs
    figures: Path
    study_config: Mapping
    provenance: Sequence[tuple[str, list]] = ()
    scripted: pd.DataFrame = field(default_factory=lambda: scripted_players({}))
    left_out: Sequence[tuple[str, str, int]] = field(default_factory=list)
    overridden: Mapping[str, object] = field(default_factory=dict)
    finished: str = ""
    truth: Path | None = None
    supervised: str = ""
    cautions: Sequence[str] = ()

    def answer(self) -> Answer:
        """Headline, cautions and first paragraphs."""
        arms, more = self.inputs.arms, [*self.cautions, *cautions(self.inputs, self.scripted)]
        spread = published_spread(self.study, self.overridden, arms.label(arms.reference))
        findings = answer(self.inputs.comparison, arms, more, spread)
        gates = self.inputs.comparison.gates
        if FAILED not in set(gates.get("result", ())):
            return findings
        headline = f"{verdict_on_gates(gates, arms.label)} {findings.headline}"
        return replace(findings, headline=headline)


def render(page: Page) -> str:
    """Render the page as HTML, deterministically."""
    comparison, logs, arms = page.inputs.comparison, page.inputs.logs, page.inputs.arms
    limit = _limit(comparison)
    environment = page_environment()
    environment.filters |= {
        "percent": words.percent,
        "points": words.points,
        "p": words.p_value,
        "number": _number,
        "temperature": words.temperature_name,
        "amount": amount,
        "measure": lambda score: MEASURES[score].name,
        # The x-coordinate of a difference, in pixels. The plot is 150 wide and has margins of 6.
        "place": lambda value: round(75 + 69 * max(-1.0, min(1.0, value / limit)), 2),
    }
    truth = truth_tables(page.truth)
    figures = _figures(page.figures)
    if truth:
        figures["truth"] = _figures(page.truth).get("truth", [])
    spent = cost(logs, arms)
    # Show both success and return if episodes can earn partial reward or the endpoint uses returns.
    # Otherwise, show only success.
    score = comparison.protocol.settings.score
    both = comparison.partial or score == "return"
    measures = [score, *({"success", "return"} - {score} if both else ())]
    remarks = [arms[name].credit.first_round_remark for name in arms.trained]
    return environment.get_template("report.html.j2").render(
        page=page,
        arms=arms,
        comparison=comparison,
        gates_verdict=verdict_on_gates(comparison.gates, arms.label),
        answer=page.answer(),
        ends=words.ends,
        several=partial(words.if_several, comparison.seeds["seed"]),
        infinite=float("inf"),
        endpoint=endpoint_phrase(comparison),
        endpoint_by_command=any("evaluation.endpoint" in key for key in page.overridden),
        over_budget=over_budget(comparison, page.inputs.play, arms),
        measures=measures,
        results=_results(comparison, arms, page.inputs.stops),
        stops=page.inputs.stops.to_dict("records"),
        gates=gate_rows(comparison, arms),
        beside=beside(comparison, arms),
        thresholds=thresholds(comparison, arms),
        most_seeds=MOST_SEEDS,
        fewest_seeds=FEWEST_SEEDS,
        seeds_needed=comparison.seeds_needed.to_dict("records"),
        scripted=_scripted(page.scripted, measures),
        families=_families(comparison, arms),
        pooled_twin=words.pooled_twin(comparison, arms),
        # For each of these arms that exists, the first table has a column of differences from it.
        opponents=[
            *(["reference"] if arms.has_reference else []),
            *(["untrained"] if arms.untrained else []),
        ],
        figures=figures,
        truth=truth,
        truth_columns=SHOWN,
        facts=_facts(page, comparison),
        commands=_commands(page),
        limit=limit,
        credit=credit_pictures(page.figures, arms),
        own_credit=own_pictures(page.figures, arms),
        fitted=words.listing([arms.label(name) for name in arms.fitted]),
        # Several arms may share an assigner; show each remark once.
        credit_remarks=list(dict.fromkeys(filter(None, remarks))),
        counts=counts(comparison, logs, arms).to_dict("records"),
        cost=spent.to_dict("records"),
        extras=logged_extras(spent),
        best=comparison.best_rounds.to_dict("records"),
        symbols=SYMBOLS,
        config_text=yaml.safe_dump(
            {key: value for key, value in page.study_config.items() if key != "provenance"},
            sort_keys=False,
            allow_unicode=True,
        ),
        seeds=sorted(comparison.seeds["seed"].unique().tolist()),
    )


def _limit(comparison: Comparison) -> float:
    """Smallest of `_LIMITS` such that a symmetric scale includes all differences and intervals."""
    tables = [t for t in (comparison.against_reference, comparison.against_untrained) if len(t)]
    ends = [table[["lower", "difference", "upper"]].abs().max().max() for table in tables]
    return next((limit for limit in _LIMITS if limit >= max(ends, default=0)), 1)


def _results(comparison: Comparison, arms: Arms, stops: pd.DataFrame) -> list[dict]:
    ended = ended_runs(stops, comparison.seeds["seed"].nunique())
    against = {"reference": comparison.against_reference, "untrained": comparison.against_untrained}
    compared = {
        name: {row.method: row for row in table.itertuples()} for name, table in against.items()
    }
    trained = comparison.methods["method"] != arms.untrained
    ranked = comparison.methods.assign(trained=trained)
    best_first = ranked.sort_values(["endpoint", "trained"], ascending=False, kind="stable")
    declared = endpoint_name(comparison.protocol.settings.endpoint)
    levels = comparison.endpoints[comparison.endpoints["endpoint"] == declared]
    levels = levels.set_index(["method", "temperature", "score"]).sort_index()
    return [
        {
            "arm": arms[row.method],
            "what": words.temperature_name(row.temperature),
            "ended": ended.get(row.method, ""),
            "row": row,
            "levels": levels.loc[(row.method, row.temperature)].to_dict("index"),
            "is_reference": row.method == arms.reference,
        }
        | {
            name: comparisons.get(row.method) if row.temperature == 0 else None
            for name, comparisons in compared.items()
        }
        for row in best_first.itertuples()
    ]


def _scripted(players: pd.DataFrame, measures: Sequence[str]) -> list[dict]:
    values = players.assign(**{"return": players["score"]}) if len(players) else players
    return [
        row | {"levels": {name: row[name] for name in measures}}
        for row in values.to_dict("records")
    ]


def _families(comparison: Comparison, arms: Arms) -> list[dict]:
    families = []
    for table in (comparison.against_reference, comparison.against_untrained, comparison.pairs):
        if not len(table):
            continue
        rows = [
            {
                "arm": arms[row.method],
                "row": row,
                "baseline": words.opponent(arms, row.baseline, row.baseline_temperature),
            }
            for row in table.sort_values("difference", ascending=False).itertuples()
        ]
        declared = table is comparison.pairs
        against = "further pairs of arms" if declared else f"against {rows[0]['baseline']}"
        families.append({"against": against, "rows": rows, "pairs": declared})
    return families


def _facts(page: Page, comparison: Comparison) -> list[tuple[str, object]]:
    seeds = sorted(comparison.seeds["seed"].unique().tolist())
    logs = page.inputs.logs
    seconds = logs.groupby(["method", "seed"])["seconds"].last().sum() if len(logs) else 0
    facts = [
        ("Endpoint", f"{endpoint_phrase(comparison)}, greedy, on the test panel"),
        ("Arms", len(page.inputs.arms.names)),
        ("Seed" if len(seeds) == 1 else "Seeds", ", ".join(map(str, seeds))),
        ("Rounds", max(comparison.last_round.values())),
        ("Test tasks", _number(comparison.n_test)),
        ("Episodes evaluated", _number(comparison.n_episodes)),
    ]
    if page.supervised:
        facts.append(("Supervised policy", page.supervised))
    if page.finished:
        facts.append(("Training ended", page.finished))
    if seconds:
        facts.append(("Total training time of all runs", words.duration(seconds)))
    return facts


def _commands(page: Page) -> dict[str, str]:
    """Commands by name: `made` reproduces the results, and `more` adds seeds.

    `viewer` and `paper` build further outputs for the same runs. `more` is "" if there are enough
    seeds. Without the required keys in the study's config, the mapping is empty.
    """
    study = page.study_config
    if not {"name", "seeds", "rounds", "methods"} <= set(study):
        return {}
    return {
        "made": command(study, page.overridden),
        "more": with_more_seeds(study, page.overridden, FEWEST_SEEDS),
        **{name: target_command(name, study, page.overridden) for name in ("viewer", "paper")},
    }


def _figures(folder: Path) -> dict[str, list[dict]]:
    sections: dict[str, list[dict]] = {}
    for entry in read_index(folder):
        if entry["section"] == "credit":
            continue  # shown as tables on the page, which are accessible and searchable
        svg = (folder / f"{entry['name']}.svg").read_text(encoding="utf-8")
        sections.setdefault(entry["section"], []).append(
            entry | {"svg": inline(svg, entry["name"], entry["alt"])}
        )
    return sections


def _number(value: float, digits: int = 0) -> str:
    if pd.isna(value):
        return words.DASH
    return f"{value:,.{digits}f}".replace(",", "\u202f").replace("-", words.MINUS)
