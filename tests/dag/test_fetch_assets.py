"""`make fetch-assets`: its rule, from a server on this machine that cuts the line."""

import hashlib
import inspect
import json
import os
import re
import subprocess
import sys

import pytest
from project_copy import copy_project
from shelf import serving

from hgrpo.stages.order import STAGES, load

STUDY = "webshop_5x40"
FILES = {
    "items_ins_v2_1000.json": b"[" + b"1, " * 50_000 + b"1]",
    "items_shuffle_1000.json": b"[" + b"2, " * 200_000 + b"2]",
}
LISTED = f"results/{STUDY}/data/files.json"


@pytest.fixture
def shelf(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(files={f"/{name}": content for name, content in FILES.items()}) as shelf:
        yield shelf


@pytest.fixture
def root(project, shelf, tmp_path, monkeypatch):
    """A copy of the project whose official files are those of the server, with size and hash."""
    root = tmp_path / "checkout"
    root.mkdir()
    copy_project(project, root)
    sources = {
        name: (f"{shelf.address}/{name}", len(content), hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    }
    with (root / "hgrpo/games/webshop/data.py").open("a", encoding="utf-8") as file:
        file.write(f"\nOFFICIAL |= {{n: Source(*each) for n, each in {sources!r}.items()}}\n")
    fetch = root / "hgrpo/games/fetch.py"
    text = fetch.read_text(encoding="utf-8").replace("ATTEMPTS = 8", "ATTEMPTS = 2")
    fetch.write_text(
        text.replace(
            "FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0",
            "FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.01",
        ),
        encoding="utf-8",
    )
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    return root


def snakemake(root, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments, "--config", f"study={STUDY}"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
def test_after_a_cut_the_same_command_goes_on_and_the_files_are_checked(root, shelf, tmp_path):
    # The first file comes; the second is cut off, and the server then refuses to go on.
    shelf.cuts = [10**9, 200_000]
    shelf.statuses = [200, 200, 503]
    cut = snakemake(root, "fetch_assets")
    assert cut.returncode != 0
    assert "run again to resume after byte " in cut.stderr
    assert "Traceback" not in cut.stderr
    assert not (root / LISTED).exists()
    assert (tmp_path / "data/items_shuffle_1000.json.part").stat().st_size > 100_000
    before = len(shelf.requests)
    done = snakemake(root, "fetch_assets")
    assert done.returncode == 0, done.stdout + done.stderr
    (rest,) = shelf.requests[before:]
    assert rest["path"] == "/items_shuffle_1000.json" and rest["Range"].startswith("bytes=1")
    for name, content in FILES.items():
        assert (tmp_path / "data" / name).read_bytes() == content
    listed = json.loads((root / LISTED).read_bytes())
    assert listed["demonstrations"] == []
    assert listed["tasks"] == [
        {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in FILES.items()
    ]
    # Then there is nothing to do, and no request is sent.
    assert "Nothing to be done" in snakemake(root, "-n", "fetch_assets").stdout
    assert len(shelf.requests) == before + 1
    # `make fetch-assets` looks all the same.
    listing = (root / LISTED).read_bytes()
    (tmp_path / "data/items_ins_v2_1000.json").unlink()
    again = snakemake(root, "fetch_assets", "--forcerun", "fetch_assets")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [each["path"] for each in shelf.requests[before + 1 :]] == ["/items_ins_v2_1000.json"]
    assert (root / LISTED).read_bytes() == listing


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "expected 600003 bytes, not 2; delete it to download it again"),
        (b"[" + b"3, " * 200_000 + b"3]", "; delete it to download it again"),
    ],
)
def test_a_file_that_is_another_one_is_named(root, shelf, tmp_path, content, message):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/items_shuffle_1000.json").write_bytes(content)
    done = snakemake(root, "fetch_assets")
    assert done.returncode != 0
    (line,) = {line for line in done.stderr.splitlines() if line.startswith("error: ")}
    assert line.startswith(f"error: products.download: {tmp_path}/data/items_shuffle_1000.json: ")
    assert line.endswith(message)
    assert not (root / LISTED).exists()


def test_no_job_that_trains_or_plays_may_fetch(project):
    """Only the stages of the data know how, and the rule stays on the machine of the run."""
    fetching = re.compile(r"\b(task|demonstration)_data_files\b")
    users = {stage for stage in STAGES if fetching.search(inspect.getsource(load(stage)))}
    assert users == {"fetch_assets", "assets", "expert"}
    (rule,) = re.findall(
        r"^rule fetch_assets:\n(?:.*\n)+?(?=^rule )",
        (project / "rules/assets.smk").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert "    localrule: not ELSEWHERE\n" in rule


def test_a_study_that_makes_its_games_has_nothing_to_fetch(root, shelf):
    done = snakemake(root, "-n", "--quiet", "host", "results/webshop_5x40_cpu/assets/panels.json")
    assert "fetch_assets" not in done.stdout + done.stderr
