"""Panels: written whole, read back, and never overlapping."""

import pytest

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.panels import (
    check_disjoint,
    check_filled,
    panel_hash,
    read_panels,
    write_panels,
)


def task(number: int) -> Task:
    return Task(f"t{number}", f"games/t{number}", f"{number:064x}", "place")


def test_panels_survive_a_round_trip_in_order(tmp_path):
    panels = {"train": [task(2), task(1)], "validation": [task(3)], "test": [task(4)]}
    write_panels(tmp_path / "panels.json", panels)
    assert read_panels(tmp_path / "panels.json") == panels


@pytest.mark.parametrize("split", ["train", "test", "analysis"])
def test_content_and_ids_are_unique(split):
    panels = {name: [task(i)] for i, name in enumerate(("train", "validation", "test", "analysis"))}
    twin = Task("other", "elsewhere", task(0).content_hash, "place")
    with pytest.raises(UserError, match=rf"{split}:other and train:t0 have the same content"):
        check_disjoint(panels | {split: [*panels[split], twin]})
    twin = Task("t0", "elsewhere", "another hash", "place")
    with pytest.raises(UserError, match=rf"{split}:t0 and train:t0 have the same id"):
        check_disjoint(panels | {split: [*panels[split], twin]})


def test_the_hash_of_a_panel_depends_on_its_tasks_and_their_order():
    tasks = [task(number) for number in range(3)]
    assert panel_hash(tasks) == panel_hash([task(number) for number in range(3)])
    others = [tasks[::-1], tasks[:2], [*tasks, task(3)]]
    assert len({panel_hash(each) for each in [tasks, *others]}) == 4


def test_an_empty_panel_is_an_error():
    with pytest.raises(UserError, match="'validation' has no tasks"):
        check_disjoint({"train": [task(1)], "validation": [], "test": [task(2)]})


@pytest.mark.parametrize("text", ["{", '{"train": [{"task_id": 1}]}'])
def test_a_broken_file_is_named(tmp_path, text):
    path = tmp_path / "panels.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"panels\.json: the file is not a valid panels file"):
        read_panels(path)


def test_a_missing_file_says_what_to_run(tmp_path):
    with pytest.raises(UserError, match="run the assets stage first"):
        read_panels(tmp_path / "panels.json")


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ((26, 6, 4), "test: too few tasks (10 required, 4 available); panel sizes: train 26, "),
        ((36, 0, 10), "validation: too few tasks (1 required, 0 available); panel sizes: train"),
    ],
)
def test_a_panel_that_gets_too_few_tasks_names_what_the_others_took(made, line):
    panels = dict(
        zip(("train", "validation", "test"), ([task(1)] * size for size in made), strict=True)
    )
    sizes = {"train": None, "validation": None, "test": 10}
    with pytest.raises(UserError) as caught:
        check_filled(panels, sizes)
    assert str(caught.value).startswith(f"env.panels.{line}")
    check_filled(panels | {"validation": [task(1)]}, {"train": made[0], "validation": None})
