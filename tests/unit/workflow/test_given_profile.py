"""A profile on the command line that Snakemake would silently ignore."""

import pytest

from hgrpo.errors import UserError
from hgrpo.workflow.given_profile import check_given_profile


@pytest.fixture
def folders(tmp_path):
    """(the command's folder, the project): each has a profile, and neither is the other."""
    for name in ("here/own", "project/profiles/laptop", "project/profiles/slurm"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").write_text("cores: 2\n", encoding="utf-8")
    return tmp_path / "here", tmp_path / "project"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-n", "sft", "--config", "study=smoke"],
        ["--profile", "mine", "--workflow-profile", "none"],
        ["--workflow-profile", "laptop"],
        ["--workflow-profile=own", "sft"],
        ["--workflow-profile", "own/config.yaml"],
        ["--workflow-profile", "../project/profiles/slurm"],
    ],
)
def test_a_profile_that_snakemake_finds_or_none_at_all(folders, words):
    check_given_profile(words, *folders)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("profiles/laptpo", "did you mean 'laptop'?"),
        ("slrum", "did you mean 'slurm'?"),
        ("./owm", "did you mean 'own'?"),
        # The Snakefile's profiles are found by name alone from another folder.
        ("profiles/laptop", "did you mean 'laptop'?"),
        ("xyzzy", "known: laptop, own, slurm"),
    ],
)
def test_a_profile_that_is_nowhere_is_named_with_the_nearest(folders, given, said):
    for words in (["sft", "--workflow-profile", given], [f"--workflow-profile={given}"]):
        with pytest.raises(UserError) as caught:
            check_given_profile(words, *folders)
        assert str(caught.value).startswith("--workflow-profile ")
        assert str(caught.value).endswith(f": no such profile; {said}")


def test_after_another_directory_only_a_whole_path_can_be_checked(folders):
    _, project = folders
    check_given_profile(["--workflow-profile", "profiles/laptpo"], None, project)
    with pytest.raises(UserError, match="did you mean 'laptop'"):
        check_given_profile(["--workflow-profile", f"{project}/profiles/laptpo"], None, project)
