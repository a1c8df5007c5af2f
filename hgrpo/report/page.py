"""Makes report.html, a self-contained file that gives the answer first, then the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pandas as pd
import yaml

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.statistics import DECIDED
from hgrpo.report import words
from hgrpo.report.arms import Arms
from hgrpo.report.draw import read_index
from hgrpo.report.figures.credit import shades
from hgrpo.report.inputs import Inputs
from hgrpo.report.logs import TRAJECTORY
from hgrpo.report.svg import inline, whisker
from hgrpo.report.tables import cost, counts, logged_extras, never_updated

SYMBOLS = {"better": "▲", "worse": "▼", "inconclusive": "◇", "one seed": "·"}
OBSERVATION = 400  # longest observation shown under an action, in characters


@dataclass
class Page:
    """The content of the page.

    Attributes:
        figures: the folder that `draw_all` wrote.
        study_config: the resolved study; the page prints all of it but its provenance.
        left_out: (stage, reason, count) of games and trajectories left out or kept with a note.
    """

    study: str
    description: str
    inputs: Inputs
    figures: Path
    study_config: Mapping
    provenance: Sequence[tuple[str, list]] = ()
    scripted: pd.DataFrame = field(default_factory=pd.DataFrame)
    left_out: Sequence[tuple[str, str, int]] = field(default_factory=list)


def render(page: Page) -> str:
    """The page as HTML text; the same inputs give the same text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hgrpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": words.percent,
        "points": words.points,
        "p": words.p_value,
        "number": _number,
        "temperature": words.temperature_name,
    }
    comparison, logs, arms = page.inputs.comparison, page.inputs.logs, page.inputs.arms
    spent = cost(logs, arms)
    remarks = [arms[name].credit.first_round_remark for name in arms.trained]
    return environment.get_template("report.html.j2").render(
        page=page,
        arms=arms,
        comparison=comparison,
        answer=words.answer(comparison, arms, never_updated(logs, arms)),
        results=_results(comparison, arms),
        scripted=page.scripted.to_dict("records"),
        families=_families(comparison, arms),
        figures=_figures(page.figures),
        credit=_credit_pictures(page.figures, arms),
        # Show each remark once, although several arms may use the assigner.
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


def _results(comparison: Comparison, arms: Arms) -> list[dict]:
    """Rows of the first table: each row of `Comparison.methods`, with the arm's comparisons."""
    against = {"reference": comparison.against_reference, "untrained": comparison.against_untrained}
    limit = _limit([table for table in against.values() if len(table)])
    compared = {
        name: {row.method: _compared(row, arms, limit) for row in table.itertuples()}
        for name, table in against.items()
    }
    return [
        {
            "arm": arms[row.method],
            "what": words.temperature_name(row.temperature),
            "row": row,
            "is_reference": row.method == arms.reference,
        }
        | {
            name: found.get(row.method) if row.temperature == 0 else None
            for name, found in compared.items()
        }
        for row in comparison.methods.itertuples()
    ]


def _families(comparison: Comparison, arms: Arms) -> list[dict]:
    """The full tables of paired comparisons, one per family, with McNemar's test per seed."""
    families = []
    for table in (comparison.against_reference, comparison.against_untrained):
        if not len(table):
            continue
        name, temperature = table.iloc[0][["baseline", "baseline_temperature"]]
        tests = comparison.mcnemar[comparison.mcnemar["baseline"] == name]
        rows = [
            _compared(row, arms, _limit([table]))
            | {"mcnemar": list(tests[tests["method"] == row.method].itertuples())}
            for row in table.itertuples()
        ]
        baseline = words.opponent(arms, name, temperature)
        families.append({"baseline": baseline, "rows": rows, "size": len(table)})
    return families


def _compared(row, arms: Arms, limit: float) -> dict:
    arm, decided = arms[row.method], row.verdict in DECIDED
    mark = whisker(row.lower, row.difference, row.upper, limit, arm.colour, decided)
    return {"arm": arm, "row": row, "verdict": row.verdict, "whisker": mark}


def _limit(tables: Sequence[pd.DataFrame]) -> float:
    """Half-width of the scale that the interval marks of these tables share."""
    ends = [table[["lower", "upper"]].abs().to_numpy().max() for table in tables]
    return max([*ends, 0.01])


def _figures(folder: Path) -> dict[str, list[dict]]:
    """Section of the page -> the section's figures, with SVG ready for the page."""
    sections: dict[str, list[dict]] = {}
    for entry in read_index(folder):
        if entry["section"] == "credit":
            continue  # the page shows this figure as a table, which can be read and searched
        svg = (folder / f"{entry['name']}.svg").read_text()
        sections.setdefault(entry["section"], []).append(
            entry | {"svg": inline(svg, entry["name"], entry["alt"])}
        )
    return sections


def _credit_pictures(folder: Path, arms: Arms) -> list[dict]:
    """One entry per trajectory, with goal, reward, arms, and turns with shaded cells."""
    path = folder / "credit.csv"
    if not path.exists():
        return []
    table = pd.read_csv(path, keep_default_na=False)
    pictures = []
    for (task_id, rollout), picture in table.groupby(TRAJECTORY, sort=False):
        shown = [name for name in arms.trained if name in set(picture["method"])]
        turns = picture.drop_duplicates("turn").sort_values("turn")
        credit, advantage = (_cells(picture, kind, shown) for kind in ("credit", "advantage"))
        pictures.append(
            {
                "task_id": task_id,
                "rollout": rollout,
                "goal": turns["goal"].iloc[0],
                "paid": float(turns["env_return"].iloc[0]),
                "arms": [arms[name] for name in shown],
                "turns": [
                    {
                        "number": index + 1,
                        "action": turn.action or "(empty)",
                        "observation": _excerpt(turn.observation) if index else "",
                        "admissible": str(turn.admissible) == "True",
                        "credit": credit[index],
                        "advantage": advantage[index],
                    }
                    for index, turn in enumerate(turns.itertuples())
                ],
            }
        )
    return pictures


def _cells(picture: pd.DataFrame, kind: str, methods: list[str]) -> list[list[dict]]:
    """For each turn its cells of `kind`, credit or advantage, in the order of the methods."""
    scaled = picture.assign(shade=0.6 * shades(picture, kind).abs()).set_index("method")
    return [
        [
            {"text": _signed(value), "shade": round(float(shade), 3), "up": value > 0}
            for value, shade in turn.loc[methods, [kind, "shade"]].itertuples(index=False)
        ]
        for _, turn in scaled.groupby("turn")
    ]


def _signed(value: float) -> str:
    """The value with a sign and two decimals; "0.00" if it rounds to zero, "0" if it is zero."""
    text = f"{value:+.2f}".replace("-", words.MINUS)
    return "0" if value == 0 else text[1:] if text[1:] == "0.00" else text


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= OBSERVATION else text[: OBSERVATION - 1].rstrip() + "…"


def _number(value: float, digits: int = 0) -> str:
    """A count with thin spaces between thousands; an en dash if the count was not logged."""
    if pd.isna(value):
        return words.DASH
    return f"{value:,.{digits}f}".replace(",", "\u202f")
