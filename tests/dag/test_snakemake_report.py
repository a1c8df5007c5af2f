"""`snakemake --report` of a finished study."""

from pathlib import Path
from zipfile import ZipFile


def test_snakemakes_report_holds_every_figure_every_table_and_the_page(finished, tmp_path):
    path = tmp_path / "report.zip"
    done = finished.snakemake("--report", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    made = finished.root / "results/grid/report"
    drawn = [file.name for kind in ("svg", "csv") for file in made.glob(f"figures/**/*.{kind}")]
    tables = [file.name for file in (made / "tables").iterdir()]
    with ZipFile(path) as held:
        files = [Path(name).name for name in held.namelist() if "/data/raw/" in name]
        html = held.read("report/report.html").decode()
    assert sorted(files) == sorted([*drawn, *tables, "report.html"])
    # Categories, captions and the description on the first page.
    for text in (
        '"Page"',
        '"Figures"',
        '"Figures of single runs"',
        '"Tables"',
        "Start here",
        "without training",
        "as single files",
    ):
        assert text in html
