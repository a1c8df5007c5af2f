"""Finished jobs travel in an archive, and a damaged or hostile one changes nothing."""

import gzip
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from stored_study import finish, finished_study, keys, small_plan

from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError
from hgrpo.store.archive import pack, unpack
from hgrpo.store.entry import read_made, take_equal, write_job
from hgrpo.store.plan import MADE, STORE, Plan, flat

ROUNDS = [("rl_round", "Progressive", 11, number) for number in (1, 2)]
PARTS = ("stage", "settings", "code", "user_files", "job", "inputs")


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a finished study, and an archive of both rounds of its Progressive."""
    there = tmp_path_factory.mktemp("there")
    with pytest.MonkeyPatch.context() as away:
        away.chdir(there)
        plan = finished_study()
        pack((plan.find(*each) for each in ROUNDS), there / "share.tar")
    return there


@pytest.fixture
def shared(exported, tmp_path):
    """The archive, free to be damaged."""
    return Path(shutil.copy(exported / "share.tar", tmp_path))


@pytest.fixture(scope="module")
def plan():
    """The study's plan in any folder."""
    return small_plan()


def members_of(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}


def write(archive: Path, members: dict[str, bytes], *special: tarfile.TarInfo) -> None:
    """An archive of files, followed by members of other kinds."""
    with tarfile.open(archive, "w") as opened:
        for name, content in members.items():
            head = tarfile.TarInfo(name)
            head.size = len(content)
            opened.addfile(head, io.BytesIO(content))
        for head in special:
            opened.addfile(head)


def test_exported_arms_are_finished_where_they_are_imported(exported, shared):
    plan = small_plan()
    new, known = unpack(shared)
    rounds = {plan.find(*each).key for each in ROUNDS}
    assert rounds | {plan.find(stage).key for stage in ("assets", "base", "sft")} <= set(new)
    assert known == []
    for key in new:
        assert (STORE / key / MADE).read_bytes() == (exported / STORE / key / MADE).read_bytes()
        made = read_made(STORE / key)
        assert (STORE / "code" / f"{made['code']}.json").is_file()
        for name in made["files"]:
            there = exported / STORE / key / name
            assert (STORE / key / name).read_bytes() == there.read_bytes()
    # A run makes what is left, and no round of the arm.
    again = {planned.key for planned in plan.to_run()}
    assert again == set(keys(plan).values()) - set(new)
    assert not list(STORE.glob(".import-*"))


def test_an_archive_names_nobody(shared):
    with tarfile.open(shared) as opened:
        assert {(each.uid, each.gid, each.uname, each.gname) for each in opened} == {(0, 0, "", "")}


def test_results_that_are_here_stay_and_an_unfinished_job_is_replaced(shared):
    plan = small_plan()
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base", "sft")])
    sft = Path(flat(plan.find("sft").outputs)[0])
    before = sft.stat().st_mtime_ns
    left = plan.find(*ROUNDS[0]).entry / "unfinished/step"
    left.parent.mkdir(parents=True)
    left.write_text("half", encoding="utf-8")
    new, known = unpack(shared)
    assert plan.find("sft").key in known and plan.find(*ROUNDS[0]).key in new
    assert sft.stat().st_mtime_ns == before and not left.exists()


def test_arms_from_another_sft_policy_of_the_same_key_are_refused(shared):
    plan = small_plan()
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base")])
    finish(plan, [plan.find("sft")], "other weights")
    before = contents_of(STORE)
    with pytest.raises(UserError) as refused:
        unpack(shared)
    assert str(refused.value).startswith(f"{shared}: Progressive seed 11 round ")
    assert "different versions of its inputs, such as the SFT policy" in str(refused.value)
    assert contents_of(STORE) == before


def test_an_sft_policy_is_refused_if_arms_were_trained_from_another_of_the_same_key(shared):
    plan = small_plan()
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base")])
    finish(plan, [plan.find("sft")], "other weights")
    finish(plan, [plan.find("evaluate", "SFTOnly")])
    shutil.rmtree(plan.find("sft").entry)
    with pytest.raises(UserError, match=f"^{shared}: SFTOnly seed 0 evaluation of round 0: "):
        unpack(shared)
    assert not plan.find("sft").made


def test_what_was_imported_can_be_copied_by_an_equal_job(shared):
    unpack(shared)
    plan = small_plan(**{"env.kinds": "19"})
    finish(plan, [plan.find(stage) for stage in ("assets", "expert", "base")])
    planned = plan.find("sft")
    job = json.loads(write_job(plan, planned, []).read_bytes())
    assert take_equal(job, planned.entry)


def test_unfinished_and_damaged_results_are_not_exported(tmp_path):
    plan = small_plan()
    with pytest.raises(UserError, match="Progressive.*: not finished; run the study first"):
        pack([plan.find(*ROUNDS[0])], tmp_path / "share.tar")
    finish(plan)
    path = Path(flat(plan.find("base").outputs)[0])
    path.write_text("edited", encoding="utf-8")
    with pytest.raises(UserError, match=f"^{path}: the file has changed since its job wrote it$"):
        pack([plan.find(*ROUNDS[0])], tmp_path / "share.tar")
    assert not (tmp_path / "share.tar").exists()


def edit_of_a_byte(content: bytes) -> bytes:
    place = content.rindex(b"summary.json ")
    return content[:place] + b"S" + content[place + 1 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "damaged, or not an uncompressed .tar \\("),
        (gzip.compress, "damaged, or not an uncompressed .tar \\("),
        (lambda content: bytes(tarfile.RECORDSIZE), "contains no finished job$"),
        (lambda content: content[: content.rindex(b"summary.json ")], "damaged"),
        # Between two members.
        (lambda content: content[: len(content) // 2 // 512 * 512], "damaged"),
        (edit_of_a_byte, "changed since its job wrote it\\); get a new copy$"),
    ],
    ids=["empty", "compressed", "no member", "cut", "cut between members", "byte"],
)
def test_a_damaged_archive_changes_nothing(plan, shared, damage, message):
    shared.write_bytes(damage(shared.read_bytes()))
    refuse(plan, shared, message)


def refuse(plan: Plan, archive: Path, message: str) -> None:
    """Check that an import is refused in one line, and that nothing has changed."""
    finish(plan, [plan.find("assets")])
    before, outside = contents_of(STORE), sorted(archive.parent.rglob("*"))
    with pytest.raises(UserError, match=message) as refused:
        unpack(archive)
    assert "\n" not in str(refused.value) and str(refused.value).startswith(f"{archive}: ")
    assert contents_of(STORE) == before
    assert sorted(archive.parent.rglob("*")) == outside


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/outside",
        "{key}/../../outside",
        "settings/../outside.json",
        "settings/{key}.txt",
        "same/{key}",
        "warm.socket",
        "{key}",
        "{key}x/summary.json",
    ],
)
def test_a_file_that_is_of_no_result_is_refused(plan, shared, name):
    members = members_of(shared)
    key = next(iter(members)).partition("/")[0]
    if key == "settings":
        key = plan.find(*ROUNDS[0]).key
    write(shared, members | {name.format(key=key): b"{}"})
    refuse(plan, shared, "does not belong to a result$|damaged")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, b"3", b"6"])
def test_a_member_that_is_no_file_is_refused(plan, shared, kind):
    head = tarfile.TarInfo(f"{plan.find(*ROUNDS[0]).key}/link")
    head.type, head.linkname = kind, "/etc/passwd"
    write(shared, members_of(shared), head)
    refuse(plan, shared, "/link does not belong to a result$")


def test_a_file_that_no_record_lists_is_refused(plan, shared):
    key = plan.find(*ROUNDS[0]).key
    write(shared, members_of(shared) | {f"{key}/rl/extra": b"x"})
    refuse(plan, shared, f"{key}: the files do not match made.json")


def test_a_job_without_its_record_or_without_what_it_was_made_from_is_refused(plan, shared):
    members = members_of(shared)
    for key in (plan.find(*ROUNDS[1]).key, plan.find("sft").key):
        write(shared, {n: c for n, c in members.items() if n != f"{key}/{MADE}"})
        refuse(plan, shared, "an ancestor of a job is missing")
    write(shared, {n: c for n, c in members.items() if not n.startswith(key)})
    refuse(plan, shared, "an ancestor of a job is missing")


@pytest.mark.parametrize("part", ["settings", "code"])
def test_edited_settings_and_code_hashes_are_refused(plan, shared, part):
    members = members_of(shared)
    # `refuse` puts the settings of `assets` into the store.
    there = f"{part}/{plan.parts('assets', None)[part]}.json"
    name = next(name for name in members if name.startswith(f"{part}/") and name != there)
    write(shared, members | {name: b'{"lr": 1}'})
    refuse(plan, shared, f"damaged or edited.* \\({name}\\)")
    for content in (b"{", b"[]"):
        write(shared, members | {name: content})
        refuse(plan, shared, "damaged or edited")
    if part == "code":
        return
    write(shared, {each: content for each, content in members.items() if each != name})
    refuse(plan, shared, f"{name} is missing")


@pytest.mark.parametrize(
    "edit",
    [
        lambda made: [],
        lambda made: made | {"stage": "../../outside"},
        lambda made: made | {"job": made["job"] | {"method": "../../outside"}},
        lambda made: made | {"inputs": {}},
        lambda made: made | {"files": made["files"] | {"../../outside": "0"}},
        lambda made: made | {"files": made["files"] | {"/outside": "0"}},
        lambda made: made | {"contents": "../../outside"},
        lambda made: made | {"key": "0" * 16},
        lambda made: made | {"host": 3},
        lambda made: made | {"seconds": -5},
    ],
)
def test_an_edited_record_is_refused(plan, shared, edit):
    members = members_of(shared)
    name = f"{plan.find(*ROUNDS[1]).key}/{MADE}"
    edited = json.dumps(edit(json.loads(members[name])))
    write(shared, members | {name: edited.encode()})
    refuse(plan, shared, "damaged or edited")


@pytest.mark.parametrize(
    "edit",
    [
        {"inputs": []},
        {"inputs": {"policy": 3}},
        {"inputs": {"policy": ["../../outside"]}},
        {"stage": "later"},
        {"job": {"method": "../../outside", "seed": 11, "round": 2}},
        {"job": {"method": "a/b", "seed": 11, "round": 2}},
        {"job": {"method": "Progressive", "seed": 11, "round": -2}},
        {"job": {"method": "Progressive", "seed": 10**300, "round": 2}},
        {"job": {"method": "P" * 300, "seed": 11, "round": 2}},
    ],
)
def test_an_edited_record_is_refused_under_its_own_key_too(plan, shared, edit):
    members = members_of(shared)
    key = plan.find(*ROUNDS[1]).key
    made = json.loads(members[f"{key}/{MADE}"]) | edit
    other = settings_digest({part: made[part] for part in PARTS})
    renamed = {name.replace(key, other): content for name, content in members.items()}
    write(shared, renamed | {f"{other}/{MADE}": json.dumps(made).encode()})
    refuse(plan, shared, "damaged or edited")
