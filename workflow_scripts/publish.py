"""Copy tables and figures of finished studies into docs/, and fill the pages that quote them.

docs/tables/<study>/ and docs/figures/<study>/ are copies from the report. The blocks of
docs/results.md, docs/calibration.md and docs/statistics.md between `<!-- results <study> -->` and
`<!-- end -->`, and our column of docs/published.md, are made from these copies, so pages always
agree with their tables. So is `hgrpo/report/published_spread.json`, from which reports of one seed
say how far seeds differ. A block of a study that is not published yet says so.

Examples:
  python workflow_scripts/publish.py bakeoff alpha_sweep   # after the studies have run
  python workflow_scripts/publish.py --truth bakeoff_plus   # after `snakemake credit_agreement`
  python workflow_scripts/publish.py --gradients sokoban_gradients   # after `snakemake gradients`
  python workflow_scripts/publish.py first_look --results float32 --variant float32   # beside it
  python workflow_scripts/publish.py --tuning first_look tune_1 tune_2   # after the tuning studies
  python workflow_scripts/publish.py                         # only fill the pages again
  python workflow_scripts/publish.py --check   # recompute what is published; an error if it differs
"""

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import agreement_speed
import check_published
import evidence
import markdown_tables
import page_blocks
import pandas as pd
import publish_sandbox

from hgrpo.command import run
from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.evaluation.statistics import FEWEST_SEEDS
from hgrpo.report.cautions import PUBLISHED
from hgrpo.sandbox.studies.study import read_study

TABLES = (
    "gates",
    "pairs",
    "methods",
    "scripted",
    "seeds",
    "against_reference",
    "against_sft",
    "sft_temperatures",
    "rounds",
    "endpoints",
    "other_endpoints",
    "thresholds",
    "thresholds_by_seed",
    "rounds_by_seed",
    "counts",
    "seeds_needed",
    "cost",
    "factorial",
    "collapse",
    "stops",
)
# Figure -> name of its data in docs/tables.
DRAWN = {"factorial": "effects", "turnrd": "turnrd", "dose_response": "dose_response"}
FIGURES = (
    "forest",
    "learning_curves",
    "learning_by_play",
    "thresholds",
    "sft_temperatures",
    "alpha",
    "alpha_diagnostics",
    "dose_response",
    "factorial",
    "turnrd",
    "collapse",
    "stops",
)
# What two further targets of a study give.
TRUTH = ("truth.csv", "closest.svg")
GRADIENTS = ("slopes.csv", "dominance.csv", "norms_*.csv", "norms_*.svg")
SPEED = (f"{agreement_speed.NAME}.csv", f"{agreement_speed.NAME}.svg")
FURTHER = (*TRUTH, *GRADIENTS, *SPEED, evidence.TUNING)
DOCS, STUDIES = Path("docs"), Path("configs/studies")
# The study whose whole report is published, for a look before installing.
SAMPLE = "first_look"
_CURVES = re.compile(
    r'<figure id="figure-runs/(?P<arm>\w+)_seed_(?P<seed>\d+)">.*?</figure>\n', re.DOTALL
)
_SVG, _INDENTS = re.compile(r"<svg.*?</svg>", re.DOTALL), re.compile(r"\s*\n\s*")


def main() -> None:
    """Copy the studies that were asked for, then fill the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", nargs="*", help="names of studies with a report")
    parser.add_argument(
        "--truth", nargs="*", default=[], help="names of studies that compared credit with truth"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of studies")
    parser.add_argument(
        "--gradients", nargs="*", default=[], help="names of studies that analysed gradients"
    )
    parser.add_argument("--variant", default="", help="folder beside the study's own tables")
    parser.add_argument("--tuning", metavar="STUDY", help="publish the tuning of STUDY: `studies`")
    parser.add_argument("--check", action="store_true", help="write nothing; recompute all")
    args = parser.parse_args()
    if args.check:
        check(DOCS, STUDIES)
        return
    for study in () if args.tuning else args.studies:
        place = str(Path(study, args.variant))
        copy(args.results / study / "report", place)
        evidence.copy(args.results / study, DOCS / "tables" / place, STUDIES / f"{study}.yaml")
        if args.variant:  # a page names its numbers, and shows no figures of it
            shutil.rmtree(DOCS / "figures" / place)
    if args.tuning:
        folders = [args.results / study for study in args.studies]
        evidence.copy_tuning(folders, DOCS / "tables" / args.tuning)
    for study in args.truth:
        copy_further(args.results / study / "credit_agreement", study, TRUTH)
        if study == agreement_speed.NAME:
            agreement_speed.write(*_folders(study))
    for study in args.gradients:
        copy_further(args.results / study / "gradients_page", study, GRADIENTS)
    for page, text in filled(DOCS, STUDIES).items():
        page.write_text(text, encoding="utf-8")
        print(page)
    PUBLISHED.write_text(spread_text(DOCS / "tables", STUDIES), encoding="utf-8")
    print(PUBLISHED)


def check(docs: Path, studies_folder: Path) -> None:
    """Recompute the tables in docs/, and fill the pages again, without writing anything.

    Raises:
        UserError: a number differs from what its study's files give, or a page from its tables.
    """
    wrong = []
    for folder in sorted(each for each in (docs / "tables").glob("**/") if any(each.glob("*.csv"))):
        found, rest = check_published.check(folder, DRAWN)
        wrong += found
        print(f"{folder.relative_to(docs / 'tables')}: {'differs' if found else 'as published'}")
        print("".join(f"    cannot be recomputed: {each}\n" for each in rest), end="")
    wrong += _wrong_in_sandbox(docs / "sandbox", publish_sandbox.STUDIES)
    print("sandbox: verdicts of pairs, from p-values that cannot be recomputed; nor can arms.csv")
    print("not recomputed: figures, and the numbers in sentences")
    for page, text in filled(docs, studies_folder).items():
        if page.read_text(encoding="utf-8") != text:
            wrong.append(f"{page}: a table is not that of docs/tables")
    if wrong:
        raise UserError("\n".join(wrong))


def _wrong_in_sandbox(docs: Path, studies: Path) -> list[str]:
    wrong = []
    for path in sorted(docs.glob(f"tables/*/{publish_sandbox.PAIRS}")):
        study = read_study(studies / f"{path.parent.name}.yaml")
        here, there = publish_sandbox.read_table(path), publish_sandbox.judged(path, study)
        wrong += [f"{path}: {each}" for each in check_published.differences(here, there)]
    page = (docs / "results.md").read_text(encoding="utf-8")
    if page != publish_sandbox.filled(page, docs, studies):
        wrong.append(f"{docs / 'results.md'}: a table is not that of {docs / 'tables'}")
    return wrong


def copy(report: Path, study: str) -> None:
    """Copy a report's tables and figures.

    Raises:
        UserError: the study has no report yet.
    """
    if not (report / "report.html").is_file():
        raise UserError(f"{report}: no report.html; run the study first")
    seeds = pd.read_csv(report / "tables/seeds.csv")["seed"].nunique()
    if seeds < FEWEST_SEEDS:
        raise UserError(
            f"{report}: {seeds} seeds give no verdict; publish studies with {FEWEST_SEEDS} or more"
        )
    tables, figures = _folders(study)
    for old in (*tables.iterdir(), *figures.iterdir()):
        kept = old.is_dir() or any(old.match(name) for name in FURTHER)
        if not kept:
            old.unlink()
    for name in TABLES:
        if (report / f"tables/{name}.csv").is_file():
            shutil.copy(report / f"tables/{name}.csv", tables)
    costs = pd.read_csv(tables / "cost.csv").drop(columns=evidence.TIMINGS, errors="ignore")
    costs.to_csv(tables / "cost.csv", index=False, lineterminator="\n")
    for name, kept in DRAWN.items():
        if (report / f"figures/{name}.csv").is_file():
            shutil.copy(report / f"figures/{name}.csv", tables / f"{kept}.csv")
    summary = report.parent / "expert/summary.json"
    if summary.is_file():
        shutil.copy(summary, tables / "expert.json")
    for name in FIGURES:
        if (report / f"figures/{name}.svg").is_file():
            shutil.copy(report / f"figures/{name}.svg", figures)
    for path in sorted(report.glob("figures/axis_*")):
        shutil.copy(path, tables if path.suffix == ".csv" else figures)
    if study == SAMPLE:
        page = shortened((report / "report.html").read_text(encoding="utf-8"))
        (DOCS / "sample_report.html").write_text(page, encoding="utf-8")


def shortened(page: str) -> str:
    """A report with the training curves of each arm's first seed alone, and less white space."""
    curves = list(_CURVES.finditer(page))
    first = {match["arm"]: match["seed"] for match in reversed(curves)}
    page = _CURVES.sub(lambda match: match[0] * (match["seed"] == first[match["arm"]]), page)
    return _SVG.sub(lambda match: _INDENTS.sub(" ", match[0]), page)


def copy_further(made: Path, study: str, names: Sequence[str]) -> None:
    """Copy the tables and figures `names` from the folder that another target of a study made.

    Raises:
        UserError: the target has not been run.
    """
    tables, figures = _folders(study)
    for name in names:
        found = sorted(made.glob(name))
        if not found:
            raise UserError(f"{made}: no {name}; run the target that makes this folder first")
        for path in found:
            shutil.copy(path, tables if path.suffix == ".csv" else figures)


def _folders(study: str) -> tuple[Path, Path]:
    """The folders of the study's tables and figures, which exist then."""
    folders = DOCS / "tables" / study, DOCS / "figures" / study
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def filled(docs: Path, studies_folder: Path) -> dict[Path, str]:
    """Page -> its text, with tables made from docs/tables, and links to docs/figures.

    A page may name any study of `studies_folder`, also before it is published.
    """
    studies = {
        folder.name: markdown_tables.read_tables(folder) for folder in (docs / "tables").iterdir()
    }
    # A method's rate comes from the first of these studies that has the method.
    rates: dict[str, str] = {}
    for study in ("bakeoff_plateau", "bakeoff_plateau_plus", "cf_supervision"):
        if study in studies:
            rates = markdown_tables.greedy_rates(studies[study]) | rates
    planned = {path.stem for path in studies_folder.glob("*.yaml")}
    figures = {folder.name: _names(folder) for folder in (docs / "figures").iterdir()}
    pages = {
        page: page_blocks.fill(page.read_text(encoding="utf-8"), studies, planned, figures)
        for page in (docs / "results.md", docs / "calibration.md", docs / "statistics.md")
    }
    published = docs / "published.md"
    return pages | {published: page_blocks.fill_rates(published.read_text(encoding="utf-8"), rates)}


def spread_text(tables: Path, studies_folder: Path) -> str:
    """JSON: study -> how far its published seeds differ.

    `deviation` is the standard deviation between seeds of an arm's paired difference from the
    reference, as the root of the mean variance over the arms.
    """
    spreads = {}
    for path in sorted(tables.glob("*/seeds.csv")):
        study = path.parent.name
        reference = read_yaml(studies_folder / f"{study}.yaml").get("reference", "flatGRPO")
        runs = pd.read_csv(path).query("temperature == 0")
        declared = "endpoint" in runs
        scores = runs.pivot(
            index="seed", columns="method", values="endpoint" if declared else "success"
        )
        rivals = scores.drop(columns=[reference, "SFTOnly"], errors="ignore")
        variance = rivals.sub(scores[reference], axis=0).var(ddof=1).mean()
        spreads[study] = {
            "seeds": len(scores),
            "endpoint": "declared" if declared else "last_round",
            "deviation": round(float(variance**0.5), 4),
        }
    return json.dumps(spreads) + "\n"


def _names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.svg")}


if __name__ == "__main__":
    run(main)
