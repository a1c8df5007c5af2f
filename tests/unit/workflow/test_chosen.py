"""Which study a command line is about."""

from pathlib import Path

import pytest

from hgrpo.errors import UserError
from hgrpo.workflow.chosen_study import STUDY_VARIABLE, chosen_study

STUDIES = Path("configs/studies")


@pytest.mark.parametrize(
    ("arguments", "study"),
    [
        (["-n"], "bakeoff"),
        (["-n", "alpha_sweep", "--config", "seeds=11"], "alpha_sweep"),
        (["results/smoke/report/report.html"], "smoke"),
        (["./results/smoke/rl/flatGRPO/seed_11/round_1/summary.json"], "smoke"),
        (["smoke", "results/smoke/report/report.html"], "smoke"),
        # Neither a target of a study nor a file in its results.
        (["results/other/report.html", "profiles/smoke", "smoke/x"], "bakeoff"),
    ],
)
def test_a_target_chooses_its_study(arguments, study):
    assert chosen_study(STUDIES, None, arguments, {}) == study


@pytest.mark.parametrize(
    ("configured", "arguments", "environment", "study"),
    [
        (None, ["-n", "kl_sweep"], {}, "interventions"),
        (None, ["kl_sweep", "top_p_sweep"], {}, "interventions"),
        # A study that is named in another way has the say.
        ("smoke", ["kl_sweep"], {}, "smoke"),
        (None, ["kl_sweep", "smoke"], {}, "smoke"),
        (None, ["kl_sweep"], {STUDY_VARIABLE: "smoke"}, "smoke"),
        (None, ["colour_sweep"], {}, "bakeoff"),
    ],
)
def test_the_target_of_an_axis_chooses_the_study_that_has_it(
    configured, arguments, environment, study
):
    assert chosen_study(STUDIES, configured, arguments, environment) == study


def test_an_axis_of_two_studies_chooses_neither(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text("axes: {kl: {}}\n", encoding="utf-8")
    # Files that are no studies are for others to refuse.
    (tmp_path / "three.yaml").write_text("axes: [kl]\n", encoding="utf-8")
    (tmp_path / "four.yaml").write_text("axes: [\n", encoding="utf-8")
    with pytest.raises(UserError, match="kl_sweep: several studies have this axis, one, two; add"):
        chosen_study(tmp_path, None, ["kl_sweep"], {})


def test_what_is_configured_and_the_environment_of_a_job():
    assert chosen_study(STUDIES, "smoke", [], {STUDY_VARIABLE: "alpha_sweep"}) == "smoke"
    assert chosen_study(STUDIES, None, [], {STUDY_VARIABLE: "alpha_sweep"}) == "alpha_sweep"
    assert chosen_study(STUDIES, "smoke", ["smoke"], {}) == "smoke"


def test_two_studies_at_a_time_are_refused():
    with pytest.raises(UserError, match="not bakeoff and smoke"):
        chosen_study(STUDIES, None, ["smoke", "results/bakeoff/config.yaml"], {})
    with pytest.raises(UserError, match="not alpha_sweep and smoke"):
        chosen_study(STUDIES, "alpha_sweep", ["smoke"], {})


def test_a_study_without_a_name_is_refused(tmp_path):
    with pytest.raises(UserError, match="study=: the name of a study was expected"):
        chosen_study(tmp_path, "", ["all"], {})
