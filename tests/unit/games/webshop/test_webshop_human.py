"""Human trajectories: what a person clicked, read from pages shown or from the imitation file."""

import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webshop_logs import GOAL, done, index, item, page, results, sub, write

from hgrpo.errors import UserError
from hgrpo.games.webshop.human import HumanTrajectory, read


def load(path: Path, rows: list[dict]) -> tuple[list[HumanTrajectory], Counter[str]]:
    counts: Counter[str] = Counter()
    return list(read(write(path / "s1.jsonl", rows), counts)), counts


MUG = ["red", "women's", "mug"]
SESSION = [
    index(),
    results(["cup"]),
    results(["cup"], 2),
    results(["cup"]),
    index(),
    results(MUG),
    item("B02", MUG),
    results(MUG),
    item("B01", MUG),
    sub("Description", "B01", MUG),
    item("B01", MUG),
    item("B01", MUG, color="red | pink"),
    item("B01", MUG, color="red | pink", size="l"),
    sub("Features", "B01", MUG, color="red | pink", size="l"),
    item("B01", MUG, color="red | pink", size="l"),
    item("B01", MUG, color="red | pink", size="xl"),
    done("B01", color="red | pink", size="xl"),
]


def test_a_session_with_every_kind_of_step(tmp_path):
    (trajectory,), counts = load(tmp_path, SESSION)
    assert trajectory == HumanTrajectory(
        goal=GOAL,
        actions=(
            "search[cup]",
            "click[next >]",
            "click[< prev]",
            "click[back to search]",
            "search[red women's mug]",
            "click[b02]",
            "click[< prev]",
            "click[b01]",
            "click[description]",
            "click[< prev]",
            "click[red | pink]",
            "click[l]",
            "click[features]",
            "click[< prev]",
            "click[xl]",
            "click[buy now]",
        ),
        reward=0.75,
    )
    assert not counts


def test_pages_shown_again_are_read_once(tmp_path):
    twice = [row for row in SESSION for _ in range(2)]
    ((again,), counts), ((once,), _) = load(tmp_path, twice), load(tmp_path, SESSION)
    assert again == once
    assert counts == {"page shown twice in a row: read once": len(SESSION)}


def test_a_session_without_a_purchase_has_no_reward(tmp_path):
    (trajectory,), _ = load(tmp_path, SESSION[:-1])
    assert trajectory.actions[-1] == "click[xl]"
    assert trajectory.reward is None


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([index(), results(MUG, 2)], "unknown transition from index to search_results"),
        (
            [index(), results(MUG), results(MUG, 3)],
            "unknown transition from search_results to search_results",
        ),
        (
            [index(), results(MUG), item("B03", MUG)],
            "unknown transition from search_results to item_page",
        ),
        (
            [*SESSION[:6], item("B02", MUG), item("B02", MUG, size="l", color="red")],
            "unknown transition from item_page to item_page",
        ),
        (
            [*SESSION[:10], item("B01", MUG, size="l")],
            "unknown transition from item_sub_page to item_page",
        ),
        ([*SESSION[:9], done("B02")], "unknown transition from item_page to done"),
        (SESSION[1:], "the session does not begin on the search page"),
        ([index(), index()], "no action"),
        ([*SESSION[:-1], index(goal="i need a cup")], "two goals in one session"),
        ([], "empty file"),
    ],
)
def test_a_session_that_cannot_be_followed_is_left_out_whole(tmp_path, rows, reason):
    trajectories, counts = load(tmp_path, rows)
    assert trajectories == []
    assert counts == {f"left out: {reason}": 1}


word = st.text(st.characters(codec="utf-8", exclude_characters=" "), min_size=1, max_size=5)
value = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=5)


@given(st.lists(word, min_size=1, max_size=4), st.dictionaries(word, value, max_size=3))
def test_any_keywords_and_choices_come_back(tmp_path_factory, words, choices):
    rows = [index(), results(words), item("B01", words)]
    chosen: dict[str, str] = {}
    for name, choice in choices.items():
        chosen[name] = choice
        rows.append(item("B01", words))
        rows[-1]["content"]["options"] = dict(chosen)
    (trajectory,), _ = load(tmp_path_factory.mktemp("logs"), rows)
    expected = [f"search[{' '.join(words)}]", "click[b01]"]
    assert list(trajectory.actions) == expected + [f"click[{v}]" for v in choices.values()]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (page("review", "x"), "line 2: page: Input should be 'index', .*, not 'review'"),
        (page("done", "x", asin=7), "line 2: content: asin: Input should be a valid string, not 7"),
        (done("B01", reward=float("nan")), "line 2: reward: Input should be a finite number"),
        (page("search_results", "x", page="one"), "line 2: content: keywords: Field required"),
        (sub("Photos", "B01", MUG), "line 2: url: no sub page in"),
    ],
)
def test_a_page_of_another_form_is_named(tmp_path, row, message):
    rows = [index(), row, *([done("B01")] if row["page"] != "done" else [])]
    trajectories, counts = load(tmp_path, rows)
    assert not trajectories
    ((reason, count),) = counts.items()
    assert re.search(rf"^bad trajectory, .* s1\.jsonl: {message}", reason)
    assert count == 1


STATES = [
    f"Amazon Shopping Game\nInstruction: \n{GOAL}\n[button] Search [button_]\n",
    f"Instruction:\n{GOAL}\n[button] Back to Search [button_]\nPage 1\n[button] B01 [button_]\n",
    f"Instruction:\n{GOAL}\n[button] Buy Now [button_]\n",
]


def imitation(**changes: object) -> dict:
    return {
        "states": STATES,
        "actions": ["search[red [big] mug]", "click[b01]", "click[buy now]"],
        "actions_translate": ["search[red mug]", "click[item - red mug]", "click[buy now]"],
        "available_actions": [[], ["click[b01]"], ["click[buy now]"]],
        "action_idxs": [-1, 0, 0],
        "images": [0, 0, [0.5]],
    } | changes


def test_the_imitation_file(tmp_path):
    trajectories, counts = load(tmp_path, [imitation(), imitation(images=[])])
    assert len(trajectories) == 2
    assert trajectories[0].goal == GOAL
    assert trajectories[0].actions == ("search[red [big] mug]", "click[b01]", "click[buy now]")
    assert trajectories[0].reward is None
    assert not counts


def test_unusable_trajectories_of_the_imitation_file_are_left_out(tmp_path):
    odd = ["search[]", "finish", "click[b01", "Click[b01]"]
    rows = [imitation(actions=[action], states=STATES[:1]) for action in odd]
    trajectories, counts = load(tmp_path, [*rows, imitation(actions=[], states=[]), imitation()])
    assert [trajectory.actions for trajectory in trajectories] == [tuple(imitation()["actions"])]
    assert counts == {
        "left out: an action is neither search[...] nor click[...]": 4,
        "left out: no action": 1,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": STATES[:2]}, "2 states, but 3 actions"),
        ({"states": STATES[::-1]}, "states: no instruction before the search button in the first"),
    ],
)
def test_a_wrong_trajectory_of_the_imitation_file_is_named(tmp_path, changes, message):
    trajectories, counts = load(tmp_path, [imitation(), imitation(**changes), imitation()])
    assert len(trajectories) == 2
    ((reason, count),) = counts.items()
    assert re.search(rf"s1\.jsonl: line 2: {message}", reason)
    assert count == 1


def test_a_folder_and_an_archive_are_read_in_the_order_of_names(tmp_path):
    folder = tmp_path / "all_trajs"
    folder.mkdir()
    (folder / "notes.txt").write_text("not a log", encoding="utf-8")
    (folder / "._a.jsonl").write_bytes(b"\x00\x05\x16\x07")
    for name, last in (("b", 17), ("a", 2), ("c", 1)):
        write(folder / f"{name}.jsonl", SESSION[:last])
    with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, f"all_trajs/{file.name}")
    for path in (folder, tmp_path / "logs.zip"):
        counts: Counter[str] = Counter()
        trajectories = list(read(path, counts))
        assert [len(trajectory.actions) for trajectory in trajectories] == [1, 16]
        assert counts == {"left out: no action": 1}


def test_a_broken_archive_is_named(tmp_path):
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("s.jsonl", json.dumps(index()))
    whole = path.read_bytes()
    for content in (whole[:-10], whole.replace(b"index", b"Index"), b"<html>"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"logs\.zip: the archive is damaged or truncated"):
            list(read(path, Counter()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n\n[1]", r"line 3: Input should be a valid dictionary .*, not \[1\]"),
        (b'{"mug": ["red mug"]}', "line 1: states: Field required"),
    ],
)
def test_a_file_of_another_form_is_named(tmp_path, content, message):
    (tmp_path / "s.jsonl").write_bytes(content + b"\n" + json.dumps(imitation()).encode())
    counts: Counter[str] = Counter()
    assert len(list(read(tmp_path / "s.jsonl", counts))) >= 1
    assert re.search(rf"s\.jsonl: {message}", next(iter(counts)))


def test_a_bad_line_costs_the_session_and_no_other(tmp_path):
    folder = tmp_path / "logs"
    (folder / "more").mkdir(parents=True)
    whole = write(folder / "a.jsonl", SESSION).read_bytes()
    for number in range(len(SESSION)):
        lines = whole.splitlines(keepends=True)
        lines[number] = lines[number][: len(lines[number]) // 2] + b"\n"
        (folder / "more/b.jsonl").write_bytes(b"".join(lines))
        counts: Counter[str] = Counter()
        assert len(list(read(folder, counts))) == 1
        line = f"logs/more/b.jsonl: line {number + 1}: invalid or truncated JSON"
        ((reason, count),) = counts.items()
        assert line in reason and count == 1
