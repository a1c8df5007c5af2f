"""The section `gradients` of a study: what it refuses."""

import pytest

from hgrpo.errors import UserError
from hgrpo.stages.files import gradient_evaluations
from hgrpo.study.study import load_study


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"after_rounds": [0, 9]}, "gradients.after_rounds: 9: the study has only 6 rounds"),
        (
            {"after_rounds": [3, 0]},
            "gradients.after_rounds: expected distinct rounds in increasing order",
        ),
        ({"groups": 129}, "gradients.groups: 129 tasks requested, but env 'sokoban-analysis' has"),
        (
            {"with_validation": True},
            "gradients.with_validation: requires `evaluation.validate_trained: true`",
        ),
        ({"groups": 10}, "10 groups are too few for 6 buckets of at least two groups"),
    ],
)
def test_what_cannot_be_measured_is_refused(project, section, message):
    with pytest.raises(UserError) as refused:
        load_study(
            project / "configs/studies/sokoban_gradients.yaml",
            {"gradients": section, "evaluation.validate_trained": False},
        )
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_success_is_read_of_the_policies_that_are_measured(project):
    path = project / "configs/studies/sokoban_gradients.yaml"
    study = load_study(path, {"gradients.with_validation": True, "seeds": [11]})
    assert gradient_evaluations(study) == [
        f"eval/{method}/seed_{0 if method == 'SFTOnly' else 11}/round_{round}/summary.json"
        for method, rounds in (("SFTOnly", [0]), ("PPO", [3, 6]), ("GRPO", [3, 6]))
        for round in rounds
    ]
    assert gradient_evaluations(load_study(path)) == []
