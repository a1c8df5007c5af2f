"""`make help` names every target."""

import re
import subprocess


def test_help_names_every_target(project):
    done = subprocess.run(["make", "help"], cwd=project, capture_output=True, text=True, check=True)
    targets = re.search(r"^\.PHONY: (.*)$", (project / "Makefile").read_text(), re.M).group(1)
    said = set(re.findall(r"make ([\w-]+)", done.stdout))
    assert set(targets.split()) - {"help"} <= said
    assert not done.stdout.startswith("#")
