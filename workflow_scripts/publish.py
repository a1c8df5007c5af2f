"""Publish finished studies in docs/: their evidence, tables, figures and pages.

docs/tables/<study>/ contains the evidence of a study (see evidence.py). The tables in this folder
and the figures in docs/figures/<study>/ are computed from the evidence. `--check` recomputes them.
The following files are generated from the tables:

- docs/results.md, docs/calibration.md and docs/statistics.md: the blocks between
  `<!-- results <study> -->` and `<!-- end -->`. The block of an unpublished study contains a note.
- docs/published.md: the column with our results.
- `hgrpo/report/published_spread.json`: the standard deviation between the seeds of each published
  study. Reports of a single seed refer to it.

With `--slice`, a run contains only some of the study's seeds or arms, and its evidence is added to
the published slices. After the last slice, tables, figures and blocks are generated; they are
byte-identical to the output of a single run of the whole study.

Examples:
  python workflow_scripts/publish.py bakeoff alpha_sweep   # after the studies have run
  python workflow_scripts/publish.py bakeoff --slice --results monday/results   # a part of it
  python workflow_scripts/publish.py --truth bakeoff_plus   # after `snakemake credit_agreement`
  python workflow_scripts/publish.py --gradients sokoban_gradients   # after `snakemake gradients`
  python workflow_scripts/publish.py first_look --results float32 --variant float32   # beside it
  python workflow_scripts/publish.py --tuning first_look tune_1 tune_2   # after the tuning studies
  python workflow_scripts/publish.py --tuning first_look tune_1 --slice   # further seeds or arms
  python workflow_scripts/publish.py                         # only update the pages
  python workflow_scripts/publish.py --check   # recompute published numbers; fails if one differs
"""

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

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
from hgrpo.report.csv_file import write_csv
from hgrpo.sandbox.studies.study import read_study
from hgrpo.study.study import load_study

# Maps the names of figures to the names of their data in docs/tables.
DRAWN = {"factorial": "effects", "turnrd": "turnrd", "dose_response": "dose_response"}
# Tables and figures of the report that are not published.
UNPUBLISHED = ("best_rounds_for_the_record", "task_types", "equal_budget")
UNPUBLISHED += ("protocol_comparison", "health")
# Published files of two other targets of a study.
TRUTH = ("truth.csv", "closest.svg")
GRADIENTS = ("slopes.csv", "dominance.csv", "norms_*.csv", "norms_*.svg")
FURTHER = (*TRUTH, *GRADIENTS, evidence.TUNING)
DOCS, STUDIES = Path("docs"), Path("configs/studies")
# The study whose whole report is published, as a sample.
SAMPLE = "first_look"
_CURVES = re.compile(
    r'<figure id="figure-runs/(?P<arm>\w+)_seed_(?P<seed>\d+)">.*?</figure>\n', re.DOTALL
)
_SVG, _INDENTS = re.compile(r"<svg.*?</svg>", re.DOTALL), re.compile(r"\s*\n\s*")


def main() -> None:
    """Publish the given studies, then update the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", nargs="*", help="names of studies with a report")
    parser.add_argument(
        "--truth", nargs="*", default=[], help="names of studies with credit_agreement"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of studies")
    parser.add_argument(
        "--gradients", nargs="*", default=[], help="names of studies with a gradients page"
    )
    parser.add_argument("--variant", default="", help="folder next to the study's own tables")
    parser.add_argument(
        "--tuning", metavar="STUDY", help="publish `studies` as the tuning runs of STUDY"
    )
    parser.add_argument(
        "--slice", action="store_true", help="add these runs to the published slices"
    )
    parser.add_argument("--check", action="store_true", help="recompute all, without writing")
    args = parser.parse_args()
    if args.check:
        check(DOCS, STUDIES)
        return
    for study in () if args.tuning else args.studies:
        place = str(Path(study, args.variant))
        publish(args.results / study, place, STUDIES / f"{study}.yaml", args.slice)
        if place == SAMPLE and not args.slice:
            page = (args.results / study / "report/report.html").read_text(encoding="utf-8")
            (DOCS / "sample_report.html").write_text(shortened(page), encoding="utf-8")
        if args.variant:  # pages do not show figures of variants
            shutil.rmtree(DOCS / "figures" / place)
    if args.tuning:
        folders = [args.results / study for study in args.studies]
        evidence.copy_tuning(folders, DOCS / "tables" / args.tuning, args.slice)
    for study in args.truth:
        copy_further(args.results / study / "credit_agreement", study, TRUTH)
    for study in args.gradients:
        copy_further(args.results / study / "gradients_page", study, GRADIENTS)
    # agreement_speed requires truth.csv and seeds.csv, which are published by separate commands.
    needed = [DOCS / "tables" / agreement_speed.NAME / name for name in ("truth.csv", "seeds.csv")]
    if agreement_speed.NAME in (*args.studies, *args.truth) and all(map(Path.is_file, needed)):
        agreement_speed.write(*_folders(agreement_speed.NAME))
    for page, text in filled(DOCS, STUDIES).items():
        page.write_text(text, encoding="utf-8")
        print(page)
    PUBLISHED.write_text(spread_text(DOCS / "tables", STUDIES), encoding="utf-8")
    print(PUBLISHED)


def check(docs: Path, studies_folder: Path) -> None:
    """Recompute the tables and pages in docs/ without writing anything.

    Raises:
        UserError: a published number differs from the recomputed number, or a page differs from
            its tables.
    """
    wrong = []
    for folder in sorted(each for each in (docs / "tables").glob("**/") if any(each.glob("*.csv"))):
        name = folder.relative_to(docs / "tables")
        if evidence.incomplete(folder):
            study = load_study(studies_folder / f"{name.parts[0]}.yaml")
            print(f"{name}: incomplete; missing: {'; '.join(evidence.read(folder).lacking(study))}")
            continue
        faults, rest = check_published.check(folder, DRAWN)
        wrong += faults
        print(f"{name}: {'differs' if faults else 'as published'}")
        print("".join(f"    cannot be recomputed: {each}\n" for each in rest), end="")
    wrong += _wrong_in_sandbox(docs / "sandbox", publish_sandbox.STUDIES)
    print(
        "sandbox: recomputed the verdicts from published p-values, but not the p-values or arms.csv"
    )
    print("not recomputed: figures, and numbers in the text of pages")
    for page, text in filled(docs, studies_folder).items():
        if page.read_text(encoding="utf-8") != text:
            wrong.append(f"{page}: a table differs from docs/tables")
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
        wrong.append(f"{docs / 'results.md'}: a table differs from {docs / 'tables'}")
    return wrong


def publish(results: Path, place: str, study_file: Path, is_slice: bool) -> None:
    """Publish the evidence of a run and, if the study is complete, its tables and figures.

    Args:
        results: results/<study>.
        place: the study's folder in docs/tables and docs/figures.
        study_file: configs/studies/<study>.yaml.
        is_slice: whether to add the run to the published slices.

    Raises:
        UserError: the study has too few seeds, slices are published but `is_slice` is false, or
            `evidence.of_run` or `evidence.merged` raises an error.
    """
    run, lacking, earlier = evidence.of_run(results, study_file), [], DOCS / "tables" / place
    if not is_slice and evidence.incomplete(earlier):
        raise UserError(f"{earlier}: contains slices; add --slice or delete {evidence.GAMES} there")
    if is_slice:
        if (earlier / evidence.GAMES).is_file():
            run = evidence.merged(evidence.read(earlier), run)
        lacking = run.lacking(load_study(study_file))
    seeds = run.tables[evidence.TRAINING]["seed"].nunique()
    if not lacking and seeds < FEWEST_SEEDS:
        raise UserError(
            f"{results}: {seeds} seeds are too few for a verdict; {FEWEST_SEEDS} are required"
        )
    tables, figures = _folders(place)
    for old in (*tables.iterdir(), *figures.iterdir()):
        if not (old.is_dir() or any(old.match(name) for name in FURTHER)):
            old.unlink()
    evidence.write(run, tables)
    if lacking:
        print(f"{tables}: no tables yet; missing: {'; '.join(lacking)}")
    else:
        make(tables, figures)


def make(tables: Path, figures: Path) -> None:
    """Compute and write the tables and figures from the evidence in `tables`."""
    with TemporaryDirectory() as folder:
        made = check_published.recomputed(tables, DRAWN, Path(folder))
        for path in Path(folder).glob("*.svg"):
            if path.stem not in UNPUBLISHED:
                shutil.copy(path, figures)
    for name in made.keys() - {*UNPUBLISHED}:
        write_csv(made[name], tables / f"{name}.csv")


def shortened(page: str) -> str:
    """Shorten a report: keep training curves of each arm's first seed only; remove white space."""
    curves = list(_CURVES.finditer(page))
    first = {match["arm"]: match["seed"] for match in reversed(curves)}
    page = _CURVES.sub(lambda match: match[0] * (match["seed"] == first[match["arm"]]), page)
    return _SVG.sub(lambda match: _INDENTS.sub(" ", match[0]), page)


def copy_further(made: Path, study: str, names: Sequence[str]) -> None:
    """Copy files from `made`, the output folder of another target; `names` are glob patterns.

    Raises:
        UserError: the target has not been run.
    """
    tables, figures = _folders(study)
    for name in names:
        paths = sorted(made.glob(name))
        if not paths:
            raise UserError(
                f"{made}: {name} is missing; run the Snakemake target that makes this folder"
            )
        for path in paths:
            shutil.copy(path, tables if path.suffix == ".csv" else figures)


def _folders(study: str) -> tuple[Path, Path]:
    """Create and return the folders of a study's tables and figures."""
    folders = DOCS / "tables" / study, DOCS / "figures" / study
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def filled(docs: Path, studies_folder: Path) -> dict[Path, str]:
    """Text of each page, with tables from docs/tables and links to docs/figures.

    A page may have blocks for every study in `studies_folder`, even if it is not yet published.
    """
    folders = [path for path in (docs / "tables").iterdir() if not evidence.incomplete(path)]
    studies = {
        folder.name: tables for folder in folders if (tables := markdown_tables.read_tables(folder))
    }
    # If several of these studies contain a method, the method's rate is from the first of them.
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
    """JSON text that maps each study to the standard deviation between its published seeds.

    `deviation` is the standard deviation over seeds of the paired difference between an arm and the
    reference. The variance is averaged over arms before the square root is taken.
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
