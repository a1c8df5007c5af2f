"""A study in which no arm solves a task: its figures can be read, and its words claim nothing."""

from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from report_fixtures import inputs_of, shipped, write_merged_study

from hgrpo.report import findings, style
from hgrpo.report.draw import study_drawings
from hgrpo.report.logs import read_fits
from hgrpo.report.names import figure_names

SMALL = {"seeds": (11, 23), "rounds": 2, "n_test": 6, "n_validation": 4, "steps": 2}
NEEDS_TURNS = {"credit", "credit_last_round"}


def nothing_won(folder, **options):
    """A study like `write_merged_study`'s, in which every episode failed."""
    study = write_merged_study(folder, **SMALL | options)
    path = study.root / "episodes.parquet"
    played = pd.read_parquet(path).assign(success=False, env_return=0.0, truncated=True)
    played.to_parquet(path)
    return study


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return inputs_of(nothing_won(tmp_path_factory.mktemp("nothing")))


def labels(figure):
    """The texts of each axis's ticks that are in sight."""
    figure.canvas.draw()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            yield [text for tick in ticks if (text := tick.label1.get_text())]


@pytest.mark.parametrize(
    "study",
    [
        "",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("alpha_sweep", "calibration_hard")
        ),
    ],
)
def test_the_ticks_of_every_axis_differ(study, tmp_path):
    options = {"settings": shipped(study)} if study else {}
    made = nothing_won(tmp_path, **options)
    inputs_read = inputs_of(made)
    drawn = []
    for drawing in study_drawings(inputs_read, {}, {}, read_fits([])):
        for texts in labels(drawing.figure):
            assert len(set(texts)) == len(texts), (drawing.name, texts)
            assert "\N{MINUS SIGN}0 %" not in texts
        drawn.append(drawing.name)
        plt.close(drawing.figure)
    announced = [each for each in figure_names(made.config, 2) if each not in NEEDS_TURNS]
    assert [name for name in drawn if name != "turnrd"] == [
        name for name in announced if name != "turnrd"
    ]


@pytest.mark.parametrize(
    ("drawn", "ends"),
    [
        ((0.0, 0.0), (0.0, 0.05)),
        ((1.0, 1.0), (0.95, 1.0)),
        ((-0.3, -0.3), (-0.325, -0.275)),
        ((0.2, 0.6), (0.2, 0.6)),
        ((float("inf"), float("-inf")), (0.0, 0.05)),
    ],
)
def test_an_axis_of_shares_shows_five_points_or_more(drawn, ends):
    assert style.wide_enough(*drawn) == pytest.approx(ends)


def test_the_figure_of_thresholds_says_that_there_is_none(inputs):
    assert inputs.comparison.first_rounds.empty
    drawn = {each.name: each for each in study_drawings(inputs, {}, {}, read_fits([]))}
    figure = drawn["thresholds"]
    plt.close("all")
    assert figure.alt == "There is no threshold above 0\u00a0%."
    assert figure.alt in [text.get_text() for text in figure.figure.findobj(plt.Text)]
    assert (
        "derived from the test success of SFT only and flat GRPO after the last" in figure.caption
    )
    assert list(figure.data) == ["threshold", "method", "trajectories", "share_reached"]


def test_no_spread_between_seeds_is_called_that(inputs):
    comparison = inputs.comparison
    assert comparison.seeds_needed.empty
    for table in (comparison.against_reference, comparison.against_untrained):
        assert table["minimum_detectable_effect"].isna().all()
    # Fewer than five seeds give no verdict, and the caution on top says so with the same reason.
    few = replace(comparison, against_reference=comparison.against_reference.assign(n_seeds=3))
    (caution,) = findings.answer(few, inputs.arms).cautions
    assert caution.startswith("Verdicts require at least five seeds: ")
    assert "The required number of seeds cannot be estimated, because all runs" in caution
    table = comparison.against_reference.assign(n_seeds=5, verdict="inconclusive")
    comparison = replace(comparison, against_reference=table)
    answer = findings.answer(comparison, inputs.arms)
    text = " ".join(text for _, texts in answer.paragraphs for text in texts)
    why = "cannot be estimated, because all runs of an arm have the same score, so the spread "
    assert f"The minimum detectable effect {why}" in text
    assert f"The required number of seeds {why}" in text
    assert "more than 200" not in text and "80 % power" not in text
    assert answer.headline.startswith("No arm solved any test task")
    # Of arms that have all won nothing, no test can be sure of anything.
    assert answer.sure.startswith("A small model may not win at all after a few training steps.")
    assert "certain" not in answer.sure and "sampling" not in answer.sure
