"""`make lint` fails on every finding of `snakemake --lint` but the named exceptions."""

import runpy
import subprocess

import pytest

from hgrpo.errors import UserError

CONDA = "Specify a conda environment or container for each rule."
PRINTED = f"""\
Lints for snakefile /p/rules/common.smk:
    * Mixed rules and functions in same snakefile.:
      Small one-liner functions used only once should be
      Also see:
      https://snakemake.readthedocs.io/en/latest

Lints for rule merge (line 11, /p/rules/report.smk):
    * {CONDA}:
      This way, the used software is documented
"""


@pytest.fixture
def lint(project):
    return runpy.run_path(str(project / "workflow_scripts/lint_workflow.py"))


def test_findings_name_their_rules(lint):
    assert lint["findings"](PRINTED) == {
        "Mixed rules and functions in same snakefile.": ["snakefile /p/rules/common.smk"],
        CONDA: ["rule merge (line 11, /p/rules/report.smk)"],
    }


@pytest.mark.parametrize(
    ("printed", "code", "message"),
    [
        (PRINTED, 1, "Mixed rules and functions"),
        # Neither a finding nor success: snakemake itself failed.
        ("SyntaxError in file\n", 1, "snakemake --lint failed"),
        (PRINTED.partition("\n\n")[2], 1, None),
        ("", 0, None),
    ],
)
def test_only_named_exceptions_pass(lint, monkeypatch, capsys, printed, code, message):
    done = subprocess.CompletedProcess([], code, stdout="", stderr=printed)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    if message is None:
        lint["main"]()
        assert CONDA in capsys.readouterr().out
    else:
        with pytest.raises(UserError, match=message):
            lint["main"]()
