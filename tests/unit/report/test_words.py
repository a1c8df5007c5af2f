"""The page's first sentences: what is significant, and nothing that the table says better."""

from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from report_fixtures import inputs_of, write_merged_study

from hgrpo.evaluation.settings import Budget
from hgrpo.report import findings, words
from hgrpo.report.draw import study_drawings
from hgrpo.report.endpoint_words import endpoint_phrase, over_budget
from hgrpo.report.logs import play_by_round, read_fits

SMALL = {"rounds": 2, "n_test": 60, "n_validation": 24, "steps": 2}
AFTER = "Significant after correction"
SAMPLING = "sampling alone (SFT only, greedy)"


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("one"), seeds=(11,), **SMALL))


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory):
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("two"), seeds=(11, 23), **SMALL))


@pytest.fixture(params=["one_seed", "two_seeds"])
def inputs(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("seeds", "differences", "p_holm", "sentence"),
    [
        (5, [0.2, 0.1, 0.3], 0.01, f"{AFTER}: training beats {SAMPLING} in all three arms."),
        (5, [0.2, -0.1, 0.3], [0.01, 0.2, 0.01], f"beats {SAMPLING} in two of three arms."),
        (
            5,
            [0.2, -0.1, 0.3],
            [0.01, 0.01, 0.5],
            f"beats {SAMPLING} in one of three arms, and does worse than it in one of three arms.",
        ),
        (
            5,
            [-0.2, -0.1, 0.3],
            [0.01, 0.01, 0.5],
            f"{AFTER}: training does worse than {SAMPLING} in ",
        ),
        (5, [0.2, 0.1, 0.3], 0.3, f"In no arm is the difference from {SAMPLING} significant"),
        (4, [0.2, 0.1, 0.3], 0.01, "With so few seeds, the size of chance differences is unknown."),
    ],
)
def test_what_is_significant(two_seeds, seeds, differences, p_holm, sentence):
    table = two_seeds.comparison.against_untrained
    table = table.assign(n_seeds=seeds, difference=differences, p_holm=p_holm)
    changed = replace(
        two_seeds.comparison,
        against_reference=two_seeds.comparison.against_reference.assign(n_seeds=seeds),
        against_untrained=table,
        best_temperature=0.0,
    )
    assert sentence in findings.answer(changed, two_seeds.arms).sure


def test_an_only_arm_is_not_counted(two_seeds):
    table = two_seeds.comparison.against_untrained.head(1)
    table = table.assign(difference=0.2, p_holm=0.001, n_seeds=5)
    changed = replace(
        two_seeds.comparison,
        against_reference=pd.DataFrame(),
        against_untrained=table,
        best_temperature=0.5,
    )
    sentence = findings.answer(changed, two_seeds.arms).sure
    assert sentence == f"{AFTER}: training beats sampling alone (SFT only, T\u00a0=\u00a00.5)."


def test_captions_speak_of_seeds_only_if_there_are_several(inputs):
    drawn = {}
    for drawing in study_drawings(inputs, {}, {}, read_fits([])):
        drawn[drawing.name] = drawing.caption
        plt.close(drawing.figure)
    several = inputs.comparison.seeds["seed"].nunique() > 1
    for name in ("forest", "learning_curves", "learning_by_play", "equal_budget", "health"):
        assert ("over seeds" in drawn[name] or "single seeds" in drawn[name]) == several
    assert ("no verdicts with one seed" in drawn["forest"]) != several


def test_an_area_over_one_round_is_not_called_the_last_round(two_seeds):
    comparison = replace(two_seeds.comparison, last_round={"SFTOnly": 1, "flatGRPO": 1})
    settings = comparison.protocol.settings

    def phrase(**changes):
        changed = replace(comparison.protocol, settings=settings.model_copy(update=changes))
        return endpoint_phrase(replace(comparison, protocol=changed))

    assert phrase() == "mean success over the only round"
    assert phrase(score="return") == "mean score over the only round"
    assert phrase(endpoint="last_round") == "success after the last round"


def test_arms_whose_first_round_takes_more_than_the_budget_are_named(two_seeds):
    arms, comparison = two_seeds.arms, two_seeds.comparison
    # Every run plays 512 trajectories a round, but for one of Progressive.
    play = play_by_round(two_seeds.logs)
    one = (play["method"] == "Progressive") & (play["seed"] == 23)
    play.loc[one, "trajectories"] += 1

    def remark(endpoint):
        settings = comparison.protocol.settings.model_copy(update={"endpoint": endpoint})
        protocol = replace(comparison.protocol, settings=settings)
        return over_budget(replace(comparison, protocol=protocol), play, arms)

    assert remark("area") == remark(Budget(budget=513)) == ""
    assert remark(Budget(budget=512)) == (
        "The first round exceeds 512 trajectories for Progressive (1 of 2 runs): these runs are "
        "scored by their initial policy."
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "1 min"), (570, "10 min"), (3600, "1 h 0 min"), (7500, "2 h 5 min")]
)
def test_durations(seconds, text):
    assert words.duration(seconds).replace("\u00a0", " ") == text
