"""The section `gradients` of a study: what it refuses."""

import pytest

from hgrpo.errors import UserError
from hgrpo.study.study import load_study


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"after_rounds": [0, 9]}, "gradients.after_rounds: 9: the study has 6 rounds"),
        ({"after_rounds": [3, 0]}, "gradients.after_rounds: different rounds in rising order"),
        ({"groups": 129}, "gradients.groups: 129 tasks are wanted, but env 'sokoban-analysis' has"),
        ({"groups": 10}, "6 buckets of 10 groups have fewer than two each"),
        ({"mode": "equal"}, "gradients.mode: input should be"),
    ],
)
def test_what_cannot_be_measured_is_refused(project, given, said):
    with pytest.raises(UserError) as refused:
        load_study(project / "configs/studies/sokoban_gradients.yaml", {"gradients": given})
    assert said in str(refused.value) and "\n" not in str(refused.value)
