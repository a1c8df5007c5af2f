"""Copy tables and figures of sandbox studies to docs/sandbox, and fill docs/sandbox/results.md.

docs/sandbox/tables/<study>/ and docs/sandbox/figures/<study>/ are copies of the studies' outputs.
Timings, and CSV files of figures above 200 KB, are not copied. The blocks of
docs/sandbox/results.md, from `<!-- sandbox <study> -->` or `<!-- sandbox inferences -->` to
`<!-- end -->`, are generated from these copies.

Examples:
  python workflow_scripts/publish_sandbox.py influence replay   # after the studies have run
  python workflow_scripts/publish_sandbox.py                    # only update the page
  python workflow_scripts/publish_sandbox.py --judge-again      # verdicts of published pairs
"""

import argparse
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from older_pages import BEFORE

from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.report.style import INDEX, read_index
from hgrpo.report.words import DASH, p_value
from hgrpo.sandbox.studies.page import number, signed
from hgrpo.sandbox.studies.results import ARMS, FIGURES, PAIRS, read_table
from hgrpo.sandbox.studies.statistics import FAR, judge
from hgrpo.sandbox.studies.study import SandboxStudy, read_study

DOCS, STUDIES = Path("docs/sandbox"), Path("configs/sandbox")
SEEDS = 10
INFERENCES = "inferences"
NOT_RUN = "*Not run yet.*"
# CSV files of figures above this size are not copied.
_LARGEST_CSV = 200_000
_BLOCK = re.compile(r"(?P<head><!-- sandbox (?P<name>\w+) -->)\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    """Copy the given studies, then update the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", nargs="*", help="names of studies that have run")
    parser.add_argument(
        "--results", type=Path, default=Path("results/sandbox"), help="folder of the sandbox"
    )
    parser.add_argument("--judge-again", action="store_true", help="recompute published verdicts")
    args = parser.parse_args()
    for path in sorted(DOCS.glob(f"tables/*/{PAIRS}")) if args.judge_again else ():
        table = judged(path, read_study(STUDIES / f"{path.parent.name}.yaml"))
        table.to_csv(path, index=False, lineterminator="\n")
    for name in args.studies:
        copy(args.results / "studies" / name, DOCS, name)
    page = DOCS / "results.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), DOCS, STUDIES), encoding="utf-8")
    print(page)


def copy(made: Path, docs: Path, name: str) -> None:
    """Copy a study's tables and figures.

    Raises:
        UserError: the study has not run, or it ran with fewer than ten seeds.
    """
    arms = read_table(made / ARMS)
    if arms["n_seeds"].min() < SEEDS:
        raise UserError(f"{made}: {arms['n_seeds'].min()} seeds; expected at least {SEEDS}")
    tables, figures = docs / "tables" / name, docs / "figures" / name
    for folder in (tables, figures):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    # Timings depend on the load of the machine.
    arms.drop(columns="seconds").to_csv(tables / ARMS, index=False, lineterminator="\n")
    shutil.copy(made / PAIRS, tables)
    shutil.copy(made / FIGURES / INDEX, figures)
    for path in sorted((made / FIGURES).iterdir()):
        small = path.suffix == ".csv" and path.stat().st_size <= _LARGEST_CSV
        if path.suffix == ".svg" or small:
            shutil.copy(path, figures)


def judged(path: Path, study: SandboxStudy) -> pd.DataFrame:
    """Recompute verdicts of a study's published pairs; `verdict_before` has the old verdicts."""
    rows = read_table(path).to_dict("records")
    of_pairs = [row for row in rows if row["kind"] == "pair"]
    for row in of_pairs:
        row.setdefault(BEFORE, row["verdict"])
    judge(of_pairs, study.metric)
    return pd.DataFrame(rows)


def _verdict(row: Mapping[str, Any]) -> str:
    """The verdict, and the previous one if it differs."""
    before = row.get(BEFORE, row["verdict"])
    return row["verdict"] + (f" (was {before})" if before != row["verdict"] else "")


def filled(page: str, docs: Path, studies: Path) -> str:
    """Regenerate all blocks of the page from the published tables.

    Raises:
        UserError: the name in a block is not a study.
    """
    known = {path.stem: read_study(path) for path in sorted(studies.glob("*.yaml"))}

    def made(match: re.Match) -> str:
        name = match["name"]
        if name != INFERENCES and name not in known:
            raise UserError(f"{match['head']}: no such study")
        text = inferences(known, docs) if name == INFERENCES else block(name, known[name], docs)
        return f"{match['head']}\n{text}\n<!-- end -->"

    return _BLOCK.sub(made, page)


def block(name: str, study: SandboxStudy, docs: Path) -> str:
    """Block of one study: figures, a table of pairs with verdicts, and a table of arms."""
    if not (docs / "tables" / name).is_dir():
        return NOT_RUN
    arms = read_table(docs / "tables" / name / ARMS)
    pairs = read_table(docs / "tables" / name / PAIRS)
    index = read_index(docs / "figures" / name)
    figures = [_figure(entry, f"figures/{name}/{entry['name']}", docs) for entry in index]
    parts = [*figures, compared(pairs), matrix(study, arms)]
    return "\n\n".join(part for part in parts if part)


def _figure(entry: Mapping[str, str], path: str, docs: Path) -> str:
    """A figure, and a link to its CSV file if this file is published; `path` has no suffix."""
    numbers = f"\n[Numbers]({path}.csv)" if (docs / f"{path}.csv").is_file() else ""
    return f"![{entry['alt']}]({path}.svg){numbers}"


def compared(pairs: pd.DataFrame) -> str:
    """A table of declared pairs of arms, and sentences on arms that differ by rounding or seeds.

    The p-value of a pair is from the test that determines its verdict. The text is empty if the
    study has no pairs.
    """
    if not len(pairs):
        return ""
    of_pairs = pairs[pairs["kind"] == "pair"].to_dict("records")
    lines = [["arm", "against", "difference", "p, Holm", "verdict", "the original's difference"]]
    for row in of_pairs:
        p = row["p_equivalent_holm" if row["verdict"] == "equivalent" else "p_holm"]
        cells = [row["arm"], str(row["against"]), _difference(row), p_value(p)]
        lines.append([*cells, _verdict(row), signed(row["published"])])
    alone = [_alone(row) for row in pairs[pairs["kind"] != "pair"].to_dict("records")]
    return "\n\n".join(part for part in (_table(lines) if of_pairs else "", *alone) if part)


def _alone(row: Mapping[str, Any]) -> str:
    """Sentence on a pair of arms that differ only by rounding or only by their seeds."""
    equal = row["difference"] == row["lower"] == row["upper"] == 0
    difference = "0" if equal else _difference(row)
    if row["kind"] == "identical":
        return f"`{row['arm']}` and `{row['against']}` differ only by rounding: {difference}."
    luck = (
        "" if row["lower"] <= 0 <= row["upper"] else " By chance, 5 % of such intervals exclude 0."
    )
    arm = row["against"]
    return f"`{arm}` with other seeds minus `{arm}`, not paired: {difference}.{luck}"


def matrix(study: SandboxStudy, arms: pd.DataFrame) -> str:
    """Table with one row per arm and one column per metric.

    The means and standard deviations of the original implementation are in brackets if published.
    """
    metrics = list(dict.fromkeys(arms["metric"]))
    lines = [["arm", *metrics]]
    for arm, of_arm in arms.groupby("arm", sort=False):
        rows = {row["metric"]: row for row in of_arm.to_dict("records")}
        lines.append([str(arm), *(_mean(rows.get(metric)) for metric in metrics)])
    some = (arms["reached"] > 0) & (arms["reached"] < arms["n_seeds"])
    notes = [(some.any(), _TOO_LOW), (arms["published"].notna().any(), _NOTE)]
    return "\n\n".join([_table(lines), *(note for stands, note in notes if stands)])


_TOO_LOW = (
    "≥ marks a mean over seeds of which some did not reach the threshold. Such a seed is counted "
    "with the length of the run, so the mean time is a lower bound."
)
_NOTE = (
    "Numbers in brackets are the original's means ± standard deviations over three seeds. * marks "
    f"a difference from the original's mean of more than {FAR:g} of the original's standard "
    "deviations. p is the p-value of Welch's test, without correction."
)


def _mean(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return DASH
    if row["reached"] == 0:
        return f"not within {number(row['horizon'])}"
    ends = "" if pd.isna(row["lower"]) else f" ({number(row['lower'])} to {number(row['upper'])})"
    mean = number(row["mean"])
    if row["reached"] < row["n_seeds"]:
        mean = f"≥ {mean}"
        ends += f", {row['reached']:.0f} of {row['n_seeds']:.0f} seeds"
    if pd.isna(row["published"]):
        return mean + ends
    spread = "" if pd.isna(row["published_deviation"]) else f" ± {row['published_deviation']:.3g}"
    published = f"{mean}{ends} [{number(row['published'])}{spread}]"
    if not abs(row["far"]) > FAR:
        return published
    return f"{published}\\*" + (
        "" if pd.isna(row["p_published"]) else f", p {p_value(row['p_published'])}"
    )


def inferences(studies: Mapping[str, SandboxStudy], docs: Path) -> str:
    """The original's inferences with the pairs that test them."""
    lines = [
        ["arm", "against", "in which respect", "difference", "implied", "verdict", "the inference"]
    ]
    parts: list[tuple[int, str]] = []
    for name, study in studies.items():
        inference = study.inference
        if inference is None:
            continue
        title = f"**{inference.number}. {inference.said}** ([{name}](#{name}))"
        if not (docs / "tables" / name).is_dir():
            parts.append((inference.number, f"{title}\n\n{NOT_RUN}"))
            continue
        pairs = read_table(docs / "tables" / name / PAIRS)
        rows = [
            [
                *(row["arm"], str(row["against"]), row["of"] or row["metric"], _difference(row)),
                *(row["said"], _verdict(row), row["claim"]),
            ]
            for row in pairs.to_dict("records")
            if row["said"]
        ]
        parts.append((inference.number, f"{title}\n\n{_table([*lines, *rows])}"))
    return "\n\n".join(text for _, text in sorted(parts))


def _difference(row: Mapping[str, Any]) -> str:
    ends = "" if pd.isna(row["lower"]) else f" ({signed(row['lower'])} to {signed(row['upper'])})"
    return signed(row["difference"]) + ends


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *rows = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    run(main)
