"""Which words of a command are targets."""

import pytest

from hgrpo.workflow.targets import target_paths

PATH = "results/smoke/report/report.html"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([PATH], [PATH]),
        (["-n", PATH, "sft", "--config", "study=smoke"], [PATH]),
        (["--report", PATH], []),
        (["-d", "results/elsewhere", PATH], [PATH]),
        (["--report=results/x.html", "--directory", "results"], []),
    ],
)
def test_paths_that_are_targets(words, found):
    assert target_paths(words) == found
