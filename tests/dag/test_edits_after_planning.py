"""Edits between plan and job: the job refuses to run with anything but what was planned."""

import shutil

import pytest

ASSETS = "results/grid/assets/panels.json"


@pytest.fixture
def real(checkout):
    """A checkout whose jobs run the project's own commands, with no results yet."""
    checkout.edit("Snakefile", "\nshell.prefix(", "\n# shell.prefix(")
    shutil.rmtree(checkout.root / "results")
    return checkout


def after_planning(checkout, edit: str) -> None:
    """Let a Snakefile edit a file itself, as soon as it has planned the jobs."""
    with (checkout.root / "Snakefile").open("a", encoding="utf-8") as handle:
        handle.write(f"\nfrom pathlib import Path\n{edit}\n")


def test_code_that_changes_while_a_job_runs(real):
    """The stage's module edits another one, which it has imported, and ends."""
    real.edit(
        "hgrpo/stages/assets.py",
        "\ndef run(",
        "\ndef run(*given):\n"
        "    found = Path('hgrpo/envs/panels.py')\n"
        "    found.write_bytes(found.read_bytes() + b'MORE = 1\\n')\n"
        "    _run(*given)\n\n\ndef _run(",
    )
    done = real.snakemake(ASSETS)
    assert done.returncode != 0
    assert "planned before the code that it runs changed" in done.stdout + done.stderr
    assert not (real.root / ASSETS).exists()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            'edited = Path("hgrpo/envs/panels.py")\n'
            'edited.write_bytes(edited.read_bytes() + b"MORE = 1\\n")',
            "error: this job was planned before the code that it runs changed; "
            "start the run again, and it plans anew",
        ),
        ("", ""),
    ],
)
def test_code_that_changes_after_the_plan(real, edit, said):
    after_planning(real, edit)
    done = real.snakemake(ASSETS)
    if said:
        assert done.returncode != 0
        assert said in done.stdout + done.stderr
        assert not (real.root / ASSETS).exists()
    else:
        assert done.returncode == 0, done.stdout + done.stderr
