"""Figures and the page of studies, from real tiny runs."""

import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from study_files import DECLARED, rows, study

from hgrpo.cli import sandbox_study
from hgrpo.cli.sandbox_study import main
from hgrpo.errors import UserError
from hgrpo.sandbox.studies.figures import ArmRows, drawings
from hgrpo.sandbox.studies.page import number, signed
from hgrpo.sandbox.studies.study import FigureSpec, recorded, resolve

SMALL = {"seq_len": 3, "d_model": 16, "batch_size": 8}
FIGURES = [
    {"name": "curves", "title": "Curves", "panels": ["test_error", "entropy"]},
    {"name": "points", "title": "Points", "kind": "points", "setting": "delay", "panels": ["loss"]},
]
INFERENCE = {"number": 1, "said": "A <beats> B"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A study whose two arms have run, as the rules would tell a job of it."""
    root = tmp_path_factory.mktemp("sandbox")
    pairs = [["A", "B", "better"], ["B", "A"]]
    declared = study(figures=FIGURES, pairs=pairs, inference=INFERENCE, tiny=SMALL)
    runs = {}
    for label, settings in resolve(declared, "small.yaml", tiny=True).items():
        folder = root / "runs" / label
        config = json.dumps({"piece": "rl", "settings": recorded(settings)})
        main(["run", "--config", config, "--output", str(folder)])
        runs[label] = str(folder)
    settings = {label: {"delay": 0} for label in runs}
    ran = {"name": "small", "study": declared.model_dump(mode="json"), "runs": runs}
    return root, ran | {"settings": settings}


@pytest.fixture(scope="module")
def reported(ran):
    root, config = ran
    folder = root / "studies/small"
    main(["statistics", "--config", json.dumps(config), "--output", str(folder)])
    main(["figures", "--config", json.dumps(config), "--output", str(folder / "figures")])
    page = {"studies": {"small": config["study"]}, "tiny": True}
    main(["page", "--config", json.dumps(page), "--output", str(root / "sandbox.html")])
    return root


def test_a_figure_shows_what_its_csv_holds(reported):
    folder = reported / "studies/small/figures"
    assert {path.name for path in folder.iterdir()} == {
        *("index.json", "curves.svg", "curves.csv", "points.svg", "points.csv")
    }
    drawn = pd.read_csv(folder / "curves.csv")
    rows = pd.read_parquet(reported / "runs/A/rows.parquet")
    drawn_of_a = drawn[(drawn["panel"] == "entropy") & (drawn["arm"] == "A")]
    assert drawn_of_a["value"].tolist() == pytest.approx(rows["entropy"].tolist())
    assert drawn_of_a["x"].tolist() == [0, 0, 2, 2, 4, 4]
    points = pd.read_csv(folder / "points.csv").set_index("arm")
    mean = rows.groupby("seed")["loss"].mean().mean()
    assert points.loc["A", "value"] == pytest.approx(mean)
    assert points["x"].tolist() == [0, 0]


def test_a_run_that_two_studies_share_is_trained_once(tmp_path, monkeypatch):
    trained, folder = [], tmp_path / "runs/shared"
    folder.parent.mkdir()

    def train(job, target):
        trained.append(target)
        time.sleep(0.05)  # the other thread reaches the run in the meantime
        target.mkdir()

    monkeypatch.setattr(sandbox_study, "_run", train)
    for name in ("_statistics", "_figures"):
        monkeypatch.setattr(sandbox_study, name, lambda *_: None)
    job = {"piece": "rl", "runs": {"shared": {}}, "figures": {}}
    words = json.dumps(job | {"statistics": {"runs": {"A": str(folder)}}})
    arguments = ["tiny", "--config", words, "--output", str(tmp_path / "study")]
    with ThreadPoolExecutor() as pool:
        list(pool.map(main, [arguments, arguments]))
    assert trained == [folder]


def test_a_curve_is_the_mean_of_seeds_at_one_evaluation():
    """The second seed logs nothing at its first evaluation, so its second meets the other's."""
    arms = {"A": ArmRows(rows("error", [1, 0.5], [float("nan"), 0.3]), {})}
    spec = FigureSpec(name="f", title="F", panels=["error"])
    (drawn,) = drawings("small", [spec], arms)
    *_, mean = drawn.figure.axes[0].lines
    assert mean.get_xdata().tolist() == [0, 4] and mean.get_ydata().tolist() == [1, 0.4]


def test_points_of_the_end_take_each_seeds_last_value():
    arms = {"A": ArmRows(rows("error", [1, 0.5], [1, 0.4]), {"delay": 3})}
    spec = FigureSpec(
        name="f", title="F", kind="points", setting="delay", at="end", panels=["error"]
    )
    (drawn,) = drawings("small", [spec], arms)
    assert drawn.data[["x", "value"]].to_numpy().tolist() == [[3, pytest.approx(0.45)]]
    assert drawn.caption.startswith("A point is the mean over the last values of all seeds")


def test_a_numbered_figure_shows_the_last_cells_of_its_columns():
    ages = {"age_10": [1, 4], "age_0": [1, float("nan")], "age_2": [0, 3], "age_mean": [5, 5]}
    arms = {"A": ArmRows(rows("error", [1, 0.5], [1, 0.4], **ages), {})}
    spec = FigureSpec(name="ages", title="Ages", kind="numbered", x="age", panels=["age"])
    (drawn,) = drawings("small", [spec], arms)
    seed_1 = drawn.data[drawn.data["seed"] == 1]
    assert seed_1[["panel", "arm", "x", "value"]].to_numpy().tolist() == [
        *(["age", "A", 0, 1], ["age", "A", 2, 3], ["age", "A", 10, 4])
    ]


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"panels": ["eror"]}, "eror"),
        ({"panels": ["error"], "x": "stp"}, "stp"),
        ({"panels": ["error"], "kind": "points", "across": "eror"}, "eror"),
        ({"panels": ["error"], "kind": "numbered"}, "error_0"),
    ],
)
def test_a_figure_of_a_column_that_nobody_logs_is_refused(changes, missing):
    spec = FigureSpec(name="f", title="F", **changes)
    arms = {"A": ArmRows(rows("error", [1, 0.5]), {})}
    with pytest.raises(UserError, match=f"^figures: f: no arm logs a column '{missing}'"):
        list(drawings("small", [spec], arms))


def test_the_page_stands_alone_and_escapes_what_people_wrote(reported):
    page = (reported / "sandbox.html").read_text(encoding="utf-8")
    assert "A &lt;beats&gt; B" in page and "A <beats> B" not in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert page.count("<svg") == 2 and 'name="viewport"' in page
    assert "two seeds" in page and "Declared metric: test error at the end" in page
    # A pair of which nothing was said stands in the study's table alone.
    assert page.count('<th scope="row">B</th><td>A</td>') == 1
    assert not re.search(r">\s*nan\s*<", page)
    identities = re.findall(r'\bid="([^"]+)"', page)
    assert len(identities) == len(set(identities))


def test_statistics_figures_and_page_import_no_torch(ran):
    root, config = ran
    job = json.dumps(config)
    words = [
        ["statistics", "--config", job, "--output", str(root / "again")],
        ["figures", "--config", job, "--output", str(root / "again/figures")],
    ]
    code = (
        "import json, sys; from hgrpo.cli.sandbox_study import main\n"
        "for words in json.loads(sys.argv[1]): main(words)\n"
        "import hgrpo.sandbox.studies.page, hgrpo.workflow.sandbox_rules\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(words)], check=True)


@pytest.mark.parametrize("job", ["statistics", "figures"])
def test_a_lost_run_is_named_and_nothing_is_written(ran, tmp_path, job):
    _, config = ran
    lost = config | {"runs": config["runs"] | {"A": str(tmp_path / "lost")}}
    with pytest.raises(UserError, match=r"lost/rows\.parquet: not a table of a run"):
        main([job, "--config", json.dumps(lost), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_a_run_of_other_code_or_with_wrong_settings_leaves_nothing(tmp_path):
    settings = DECLARED["base"] | SMALL | {"method": "DG", "seeds": [0], "num_steps": 1}
    out = tmp_path / "runs/x"
    config = json.dumps({"piece": "rl", "settings": settings, "code": "0" * 16})
    with pytest.raises(UserError, match="the code has changed since planning"):
        main(["run", "--config", config, "--output", str(out)])
    config = json.dumps({"piece": "rl", "settings": settings | {"lr": -1}})
    with pytest.raises(UserError, match=r"rl: lr: .*greater than 0"):
        main(["run", "--config", config, "--output", str(out)])
    assert not out.parent.exists() or not any(out.parent.iterdir())


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [
        (0.12345, "0.123", "+0.123"),
        (-12.345, "-12.3", "-12.3"),
        (999.4, "999", "+999"),
        (999.6, "1,000", "+1,000"),
        (-1234567.8, "-1,234,568", "-1,234,568"),
        (float("nan"), "\N{EN DASH}", "\N{EN DASH}"),
    ],
)
def test_numbers_have_three_digits_or_are_whole(value, plain, with_sign):
    texts = [text.replace("\N{MINUS SIGN}", "-") for text in (number(value), signed(value))]
    assert texts == [plain, with_sign]
