"""Official data files of a config: there, fetched from a real server, or missing."""

import hashlib
import json
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.games.fetch import Source
from hgrpo.games.panels import read_panels
from hgrpo.games.webshop import generator
from hgrpo.games.webshop.assets import data_files
from hgrpo.games.webshop.data import OFFICIAL, provide
from hgrpo.games.webshop.settings import CatalogueSettings
from hgrpo.stages.sections import environment_settings

SMALL = {"items_file": "items_shuffle_1000.json", "attributes_file": "items_ins_v2_1000.json"}
NAMES = ["items_ins_v2_1000.json", "items_shuffle_1000.json"]


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder that a server offers as the official files, and the paths it was asked for."""
    folder = tmp_path / "shelf"
    generator.write(folder, generator.generate(CatalogueSettings(products=40), 3))
    for old, new in (
        (generator.PRODUCTS_FILE, SMALL["items_file"]),
        (generator.INSTRUCTIONS_FILE, SMALL["attributes_file"]),
    ):
        (folder / old).rename(folder / new)
    (folder / "all_trajs.zip").write_bytes(b"people")
    requests: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    for path in folder.iterdir():
        if path.name in OFFICIAL:
            url = f"http://127.0.0.1:{server.server_port}/{path.name}"
            source = Source(url, path.stat().st_size, digest(path))
            monkeypatch.setitem(OFFICIAL, path.name, source)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield folder, requests
    server.shutdown()
    server.server_close()
    thread.join()


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def config(**products):
    settings = {
        "name": "webshop",
        "products": {"folder": "$WEBSHOP_DATA", **SMALL} | products,
        "panels": {"test": 5, "validation": 5},
    }
    return environment_settings(settings, "test")


def records(folder, names=NAMES) -> list[dict]:
    return [
        {"name": n, "size": (folder / n).stat().st_size, "sha256": digest(folder / n)}
        for n in names
    ]


def make_assets(env, out) -> dict:
    run_stage("assets", "--config", env.model_dump_json(), "--out", out)
    return json.loads((out / "manifest.json").read_bytes())


@pytest.mark.extra("webshop")
def test_missing_files_are_fetched_once_and_recorded(shelf, tmp_path, monkeypatch):
    folder, requests = shelf
    data = tmp_path / "data"
    monkeypatch.setenv("WEBSHOP_DATA", str(data))
    manifest = make_assets(config(download=True), tmp_path / "assets")
    assert sorted(requests) == [f"/{name}" for name in NAMES]
    assert manifest["data_files"] == records(folder)
    assert manifest["env"]["products"]["folder"] == "$WEBSHOP_DATA"
    assert sorted(path.name for path in data.iterdir()) == NAMES
    assert len(read_panels(tmp_path / "assets/panels.json")["test"]) == 5
    again = make_assets(config(download=True), tmp_path / "again")
    assert again["panels"] == manifest["panels"]
    assert len(requests) == len(NAMES)


def test_people_s_instructions_are_fetched_where_goals_are_theirs(shelf, tmp_path, monkeypatch):
    folder, requests = shelf
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    env = config(download=True).model_copy(update={"goals": "both"})
    assert data_files(env) == records(folder, [*NAMES, "items_human_ins.json"])
    assert "/items_human_ins.json" in requests


def test_another_file_of_an_official_name_is_refused_and_kept(shelf, tmp_path, monkeypatch):
    _, requests = shelf
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    mine = tmp_path / "data" / NAMES[0]
    mine.parent.mkdir()
    mine.write_text("{}", encoding="utf-8")
    with pytest.raises(
        UserError, match=r"products.download: .*_1000.json: expected .* bytes, not 2"
    ):
        data_files(config(download=True))
    assert mine.read_text(encoding="utf-8") == "{}"
    assert not requests


def test_a_folder_of_one_s_own_is_recorded_without_the_extra(shelf, monkeypatch):
    folder, requests = shelf
    without_extra(monkeypatch)
    assert data_files(config(folder=str(folder))) == records(folder)
    changed = folder / NAMES[1]
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert data_files(config(folder=str(folder))) == records(folder)
    assert not requests


def without_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)


def test_fetching_without_its_packages_names_them(tmp_path, monkeypatch):
    without_extra(monkeypatch)
    with pytest.raises(UserError, match=r"^products.download: .* pip install requests tenacity"):
        data_files(config(folder=str(tmp_path), download=True))


def test_without_a_network_one_line_says_what_to_do(shelf, tmp_path, monkeypatch):
    # Nothing listens there, and the pauses between attempts are not waited for.
    monkeypatch.setitem(OFFICIAL, NAMES[0], Source("http://127.0.0.1:9/file"))
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(UserError) as caught:
        data_files(config(folder=str(tmp_path / "data"), download=True))
    assert str(caught.value) == (
        "products.download: http://127.0.0.1:9/file: cannot connect (ConnectionError); "
        f"check the network (alternatively, copy the file to {tmp_path}/data/{NAMES[0]})"
    )


@pytest.mark.parametrize("download", [True, False])
def test_a_missing_file_that_cannot_be_fetched_is_named(tmp_path, download):
    env = config(folder=str(tmp_path), attributes_file="mine.json", download=download)
    with pytest.raises(UserError, match=rf"^{tmp_path}/mine.json: not found; set `products.downl"):
        data_files(env)


def test_a_folder_of_trajectories_is_one_entry(tmp_path):
    folder = tmp_path / "logs"
    for name, text in (("b/2.jsonl", "22"), ("a.jsonl", "1"), ("b/10.jsonl", "333")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    entry = provide(folder, download=False)
    expected = hashlib.sha256(b"1" + b"333" + b"22").hexdigest()
    assert entry == {"name": "logs", "size": 6, "sha256": expected}
