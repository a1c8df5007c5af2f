"""Digests of the user's own files: what changes them, and what does not."""

import pytest

from hgrpo.envs.kinds import environment_settings
from hgrpo.envs.user_files import user_contents_digest, user_files_digest
from hgrpo.errors import UserError

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


def test_contents_count_and_folders_do_not(tmp_path):
    one, other = games(tmp_path / "one"), games(tmp_path / "other")
    found = user_contents_digest(alfworld(one), "assets")
    assert found == user_contents_digest(alfworld(other), "assets")
    (other / "valid_seen/g1/game.tw-pddl").write_text("[]", encoding="utf-8")
    assert found != user_contents_digest(alfworld(other), "assets")
    # A plan, which must be quick, sees names and sizes alone.
    assert user_files_digest(alfworld(one), "assets") == user_files_digest(
        alfworld(other), "assets"
    )
    (other / "valid_seen/g1/game.tw-pddl").rename(other / "valid_seen/game.tw-pddl")
    assert user_files_digest(alfworld(one), "assets") != user_files_digest(
        alfworld(other), "assets"
    )


def test_an_official_file_counts_by_its_published_hash_also_before_it_is_there(tmp_path):
    files = {"items_file": "items_shuffle_1000.json", "attributes_file": "items_ins_v2_1000.json"}
    before = user_contents_digest(webshop(tmp_path / "none", download=True, **files), "assets")
    for name in files.values():
        (tmp_path / name).write_text("damaged", encoding="utf-8")
    assert before == user_contents_digest(webshop(tmp_path, download=True, **files), "assets")
    assert before != user_contents_digest(webshop(tmp_path, **files), "assets")
    assert user_contents_digest(webshop(tmp_path, download=True, **files), "expert") is None


@pytest.mark.parametrize(
    ("download", "hint"), [(True, "; `make fetch-assets` with the same STUDY"), (False, "$")]
)
def test_what_is_not_there_is_named(tmp_path, download, hint):
    root = games(tmp_path / "games")
    (root / "valid_unseen/g1/game.tw-pddl").unlink()
    with pytest.raises(
        UserError, match=rf"^games\.folder: {root}: there is no {root}/valid_unseen/.*pddl{hint}"
    ):
        user_contents_digest(alfworld(root, download=download), "assets")


def test_a_dangling_link_is_named(tmp_path):
    root = games(tmp_path / "games")
    (root / "train/g2").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=rf"^games\.folder: {root}/train/g2: No such file"):
        user_contents_digest(alfworld(root), "assets")
