"""The scratch folder of a command that no study runs."""

import pytest

from hgrpo.errors import UserError
from hgrpo.learning.scratch import job_scratch


def test_a_folder_beside_the_results_goes_when_the_command_succeeds(tmp_path):
    out = tmp_path / "out"
    with job_scratch(None, out, "key") as folder:
        assert folder == tmp_path / "out-scratch/key"
        (folder / "step").write_text("", encoding="utf-8")
        with pytest.raises(UserError, match="another process"), job_scratch(None, out, "key"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_it_stays_with_its_steps_when_the_command_fails(tmp_path):
    with pytest.raises(KeyboardInterrupt), job_scratch(None, tmp_path / "out", "key") as folder:
        (folder / "step").write_text("", encoding="utf-8")
        raise KeyboardInterrupt
    assert (tmp_path / "out-scratch/key/step").is_file()


def test_a_folder_of_the_study_stays(tmp_path):
    with job_scratch(tmp_path / "scratch", tmp_path / "out", "key") as folder:
        pass
    assert not folder.exists() and (tmp_path / "scratch/lock").is_file()
