"""Digests of the user's own files: what changes them, and what does not."""

from hgrpo.games.kinds import load
from hgrpo.stages.sections import environment_settings

SPLITS = ("train", "valid_seen", "valid_unseen")


def games(root, text="{}"):
    for split in SPLITS:
        path = root / split / "g1/game.tw-pddl"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return root


def alfworld(root, **more):
    return environment_settings({"name": "alfworld", "games": {"folder": str(root)} | more}, "env")


def webshop(root, **more):
    data = {"name": "webshop", "products": {"folder": str(root)} | more}
    return environment_settings(data, "env")


def digest_of(env, stage):
    return load(env.name).user_files_digest(env, stage)


def test_names_and_sizes_count_and_folders_do_not(tmp_path):
    one, other = games(tmp_path / "one"), games(tmp_path / "other")
    digest = digest_of(alfworld(one), "assets")
    assert digest == digest_of(alfworld(other), "assets")
    # A plan must be quick: it sees names and sizes alone.
    (other / "valid_seen/g1/game.tw-pddl").write_text("[]", encoding="utf-8")
    assert digest == digest_of(alfworld(other), "assets")
    (other / "valid_seen/g1/game.tw-pddl").write_text("[ ]", encoding="utf-8")
    assert digest != digest_of(alfworld(other), "assets")
    (one / "valid_seen/g1/game.tw-pddl").rename(one / "valid_seen/game.tw-pddl")
    assert digest != digest_of(alfworld(one), "assets")


def test_a_file_that_the_study_fetches_does_not_count(tmp_path):
    files = {"items_file": "items_shuffle_1000.json", "attributes_file": "items_ins_v2_1000.json"}
    assert digest_of(webshop(tmp_path, download=True, **files), "assets") is None
    for name in files.values():
        (tmp_path / name).write_text("[]", encoding="utf-8")
    assert digest_of(webshop(tmp_path, **files), "assets") is not None
    assert digest_of(webshop(tmp_path, **files), "expert") is None
