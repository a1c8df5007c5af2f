"""The judge in the report: cost and label."""

import pytest
from report_fixtures import inputs_of, shipped, write_merged_study

from hgrpo.learning.method import MethodConfig
from hgrpo.report.tables import cost, logged_extras

COUNTED = {
    "judge_calls": (90.0, "judge calls"),
    "judge_cache_hits": (10.0, "judge cache hits"),
    "judge_fallbacks": (1.0, "judge fallbacks"),
    "judge_input_tokens": (1500.0, "judge prompt tokens"),
    "judge_output_tokens": (120.0, "judge completion tokens"),
    "judge_dollars": (0.25, "judge dollars"),
    "judge_dollars_unconfirmed": (0.01, "judge dollars, unconfirmed"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    names = ("SFTOnly", "flatGRPO", "LLMJudge")
    arms = {name: arm for name, arm in shipped("bakeoff").items() if name in names}
    small = {"seeds": (11,), "rounds": 1, "n_test": 12, "n_validation": 6}
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("study"), settings=arms, **small))


def test_the_cost_table_has_all_that_a_judge_counts(inputs):
    mine = inputs.logs["method"] == "LLMJudge"
    logs = inputs.logs.copy()
    for name, (value, _) in COUNTED.items():
        logs.loc[mine, name] = value
    table = cost(logs, inputs.arms)
    assert logged_extras(table) == {name: title for name, (_, title) in COUNTED.items()}
    row = table.set_index("method").loc["LLMJudge"]
    steps = int(mine.sum())
    assert {name: row[name] for name in COUNTED} == pytest.approx(
        {name: steps * value for name, (value, _) in COUNTED.items()}
    )
    assert table.set_index("method").loc["flatGRPO", list(COUNTED)].isna().all()


@pytest.mark.parametrize(
    ("credit", "label"),
    [
        ({"model": "offline-rubric", "base_url": "service"}, "Judge (offline rubric)"),
        ({"model": "offline-rubric", "base_url": "http://host/v1"}, "Judge (offline rubric)"),
        ({"model": "gpt-4o-mini"}, "Judge"),
    ],
)
def test_the_label_depends_on_the_model(credit, label):
    method = MethodConfig(name="J", label="Judge", alpha=0.5, credit={"kind": "judge"} | credit)
    assert method.full_label == label
