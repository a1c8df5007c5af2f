"""Which words of a command are targets."""

import pytest

from hgrpo.errors import UserError
from hgrpo.workflow.targets import check_wildcards, target_paths, unknown_target

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
        ("study=x", [], "study=x: a setting stands after --config: --config study=x"),
        ("a.b=1", [], 'a.b=1: a setting stands after --config: --config set="a.b=1"'),
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


@pytest.mark.parametrize("words", [["rl_round"], ["-n", "rl_round"], ["report", "rl_round", "-n"]])
def test_a_rule_of_many_jobs_is_no_target(words):
    with pytest.raises(UserError, match="rl_round: this rule has many jobs; name .* such as r/x$"):
        check_wildcards(words, {"rl_round": "r/x"})


@pytest.mark.parametrize("words", [["report"], ["--until", "rl_round"], ["-R", "sft", "rl_round"]])
def test_an_option_may_name_a_rule_of_many_jobs(words):
    check_wildcards(words, {"rl_round": "r/x"})
