"""Which words of a command are targets."""

import pytest

from hgrpo.workflow.targets import target_paths, unknown_target

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


@pytest.mark.parametrize(
    ("target", "elsewhere", "said"),
    [
        ("figurs", [], "figurs: no such target; did you mean 'figures'?"),
        ("turnrd_fit", [], "turnrd_fit: this rule is now called credit_fit"),
        (
            "kl_sweep",
            ["a", "b"],
            "kl_sweep: the study has no such axis, but a and b have; add study=a to --config",
        ),
    ],
)
def test_an_unknown_target_is_one_line(target, elsewhere, said):
    assert unknown_target(target, {"figures", "report"}, elsewhere) == said
