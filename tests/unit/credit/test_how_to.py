"""The assigner with settings of docs/how_to.md does what the page says."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

import hgrpo.credit
from hgrpo.credit.base import Context, Group, assign_all
from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn


def test_the_assigner_of_the_page_shares_the_return(project):
    page = (project / "docs/how_to.md").read_text(encoding="utf-8")
    code = re.search(r"`hgrpo/credit/late\.py`:\n\n```python\n(.*?)```", page, re.DOTALL)[1]
    module: dict = {}
    exec(code, module)
    assigner = module["make"](module["Settings"](decay=0.5), Context())
    task = Task("hall", "hall", "hash", "hall")
    turns = [Turn("", "go", (0, 0), reward, 0.0, True, False) for reward in (0.0, 0.0, 7.0)]
    (credit,) = assign_all(assigner, [Group([Trajectory(task, 0, turns=turns)], ("late",))])
    np.testing.assert_allclose(credit[0], [1, 2, 4])
    with pytest.raises(ValidationError, match="decay"):
        module["Settings"](decay=2)


def test_the_test_of_the_page_passes(project, tmp_path, monkeypatch):
    page = (project / "docs/how_to.md").read_text(encoding="utf-8")
    late = re.search(r"`hgrpo/credit/late\.py`:\n\n```python\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "late.py").write_text(late, encoding="utf-8")
    monkeypatch.setattr(hgrpo.credit, "__path__", [*hgrpo.credit.__path__, str(tmp_path)])
    code = re.search(r'```python\n("""tests/unit/credit/test_late\.py.*?)```', page, re.DOTALL)[1]
    module: dict = {}
    exec(code, module)
    module["test_later_turns_earn_more"]()
