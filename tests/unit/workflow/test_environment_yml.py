"""environment.yml adds nothing to pyproject.toml: Python, pip, and the package itself."""

import re
import tomllib

import yaml


def test_environment_is_python_pip_and_this_package(project):
    environment = yaml.safe_load((project / "environment.yml").read_text())
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    *conda, pip = environment["dependencies"]
    assert conda == [f"python{pyproject['requires-python']}", "pip"]
    assert list(pip) == ["pip"]
    (package,) = pip["pip"]
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", package).group(1).split(",")
    assert set(extras) <= set(pyproject["optional-dependencies"])


def test_every_direct_dependency_is_pinned_in_the_constraints(project):
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    wanted = pyproject["dependencies"] + [
        package
        for extra, packages in pyproject["optional-dependencies"].items()
        for package in packages
        if extra != "alfworld"
    ]
    names = {re.match(r"[\w-]+", package).group().lower() for package in wanted}
    lines = (project / "constraints.txt").read_text().lower().splitlines()
    pinned = [line.split("==")[0] for line in lines if not line.startswith("#")]
    assert names <= set(pinned)
    assert len(pinned) == len(set(pinned))


def test_torch_is_pinned_without_a_build_tag_or_an_index(project):
    text = (project / "constraints.txt").read_text()
    assert re.search(r"^torch==[\d.]+$", text, re.MULTILINE)
    assert "://" not in text


def test_nothing_below_the_train_extra_needs_torch(project):
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    heavy = re.compile(r"torch|transformers|peft|textworld|alfworld")
    assert not [package for package in pyproject["dependencies"] if heavy.match(package)]
    assert not [p for p in pyproject["optional-dependencies"]["workflow"] if heavy.match(p)]
