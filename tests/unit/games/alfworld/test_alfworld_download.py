"""The published games from a real server on this machine: unpacked, counted, and nothing else."""

import io
import json
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from stage_settings import run_stage

from hgrpo.archive import unpacked
from hgrpo.errors import UserError
from hgrpo.games.alfworld import download
from hgrpo.games.alfworld.download import ARCHIVES, RECEIPT, fetch_games
from hgrpo.games.fetch import Source
from hgrpo.stages.sections import environment_settings

SIZES = {"train": 6, "valid_seen": 3, "valid_unseen": 2}
EXPECTED = {"train": 6, "validation": 3, "test": 2}


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """Generated games, below the published names of the splits."""
    folder = tmp_path_factory.mktemp("made")
    sizes = {"train": 6, "validation": 3, "test": 2}
    made = {"name": "alfworld", "games": {"generate": {}}, "panels": sizes, "grammar": "put"}
    run_assets(made, folder / "assets")
    games = unpacked(folder / "assets/tasks.tar.gz") / "games"
    for old, new in zip(("train", "validation", "test"), SIZES, strict=True):
        (games / old).rename(folder / new)
    return folder


def run_assets(config, out):
    run_stage("assets", "--config", json.dumps({"env": config}), "--out", out)


@pytest.fixture
def shelf(games, tmp_path, monkeypatch):
    """A folder of the two archives that a server offers, and the paths it was asked for."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    content = {"tw-pddl.zip": "game.tw-pddl", "json.zip": "traj_data.json"}
    for archive, kind in content.items():
        with zipfile.ZipFile(folder / archive, "w") as opened:
            for split in SIZES:
                for path in sorted((games / split).glob(f"*/*/{kind}")):
                    opened.writestr(f"json_2.1.1/{path.relative_to(games)}", path.read_bytes())
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    for name in content:
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        monkeypatch.setitem(ARCHIVES, name, Source(url))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield folder, requests
    server.shutdown()
    server.server_close()
    thread.join()


def official(root, **changes):
    games = {"folder": str(root), "download": True, "expected": EXPECTED} | changes
    panels = dict.fromkeys(EXPECTED)
    return {"name": "alfworld", "grammar": "put", "games": games, "panels": panels}


def test_the_assets_stage_fetches_counts_and_notes_what_came(shelf, games, tmp_path):
    root = tmp_path / "data/json_2.1.1"
    run_assets(official(root), tmp_path / "assets")
    unpacked = sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file())
    expected = [p.relative_to(games) for s in SIZES for p in (games / s).rglob("*") if p.is_file()]
    assert unpacked == sorted([*expected, Path(RECEIPT)])
    manifest = json.loads((tmp_path / "assets/manifest.json").read_bytes())
    assert [row["name"] for row in manifest["data_files"]] == [s.url for s in ARCHIVES.values()]
    assert all(len(row["sha256"]) == 64 and row["size"] > 0 for row in manifest["data_files"])
    assert {split: row["tasks"] for split, row in manifest["panels"].items()} == EXPECTED
    # A second study asks the server for nothing.
    _, requests = shelf
    before = list(requests)
    run_assets(official(root), tmp_path / "again")
    again = json.loads((tmp_path / "again/manifest.json").read_bytes())
    assert again["data_files"] == manifest["data_files"] and requests == before


def test_a_call_that_was_cut_off_goes_on(shelf, tmp_path, monkeypatch):
    root = tmp_path / "data"
    made = download._unpack

    def cut(archive, target):
        if archive.name == "json.zip":
            raise KeyboardInterrupt
        made(archive, target)

    monkeypatch.setattr(download, "_unpack", cut)
    with pytest.raises(KeyboardInterrupt):
        fetch_games(root)
    assert not (root / RECEIPT).exists()
    monkeypatch.setattr(download, "_unpack", made)
    assert len(fetch_games(root)) == 2
    assert len(list(root.glob("*/*/*/traj_data.json"))) == 11


def test_games_of_somebody_else_are_left_alone(shelf, games):
    _, requests = shelf
    assert fetch_games(games) == [] and requests == []


def test_another_number_of_games_is_refused(games, tmp_path):
    config = official(games, download=False, expected=EXPECTED | {"validation": 4})
    message = rf"games\.expected\.validation: expected 4 games, but {games}/valid_seen has 3"
    with pytest.raises(UserError, match=message):
        run_assets(config, tmp_path / "assets")
    assert not (tmp_path / "assets").exists()


def test_names_outside_the_layout_are_not_unpacked(shelf, tmp_path):
    folder, _ = shelf
    bad = ("../outside", "/abs", "json_2.1.1/train/../../a/game.tw-pddl", "json_2.1.1/train/x.pkl")
    with zipfile.ZipFile(folder / "json.zip", "a") as opened:
        for name in bad:
            opened.writestr(name, "bad")
    root = tmp_path / "deep/data"
    fetch_games(root)
    files = [p for p in tmp_path.rglob("*") if p.is_file() and "shelf" not in p.parts]
    assert {p.name for p in files} == {"game.tw-pddl", "traj_data.json", RECEIPT}
    assert all(p.read_bytes() != b"bad" for p in files)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no zip", "not a zip archive"), (None, "contains no games of json_2.1.1")],
)
def test_an_archive_that_is_none(shelf, tmp_path, content, message):
    folder, _ = shelf
    if content is None:
        empty = io.BytesIO()
        zipfile.ZipFile(empty, "w").close()
        content = empty.getvalue()
    (folder / "tw-pddl.zip").write_bytes(content)
    with pytest.raises(UserError, match=rf"tw-pddl\.zip: {message}"):
        fetch_games(tmp_path / "data")


def test_the_shipped_config_wants_the_published_numbers(project):
    shipped = yaml.safe_load((project / "configs/envs/alfworld-official.yaml").read_bytes())
    config = environment_settings(shipped, "shipped")
    sizes = config.games.expected
    assert (sizes.train, sizes.validation, sizes.test) == (3553, 140, 134)
    assert config.games.download and config.panels.test is None
    assert environment_settings(shipped | {"grammar": "move"}, "moved").grammar == "move"
