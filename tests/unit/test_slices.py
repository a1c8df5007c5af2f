"""Slices of a study give the files that the whole study gives, and refuse what does not fit."""

import copy
from dataclasses import replace

import check_published
import evidence
import page_blocks
import pandas as pd
import publish
import pytest

from hgrpo.errors import UserError

STUDY, SEEDS = "first_look", (113, 127, 131, 137, 139, 149, 151, 157)
ARMS = ["flatGRPO", "flatGRPO_AA", "Exact", "ExactShuffled", "Progressive"]


@pytest.fixture
def whole(project):
    """The published evidence of a study, with settings of its runs."""
    study = evidence.read(project / "docs/tables" / STUDY)
    arms = {name: {"alpha": 0.5, "training": {}} for name in study.settings["order"]}
    recorded = {"training": {"lr": 0.003}, "rounds": 4, "methods": arms}
    return replace(study, settings=study.settings | {"recorded": recorded})


def part(study, seeds=SEEDS, arms=("SFTOnly", *ARMS)):
    """The evidence of a run of some seeds and arms."""
    runs = {(arm, seed) for arm in arms for seed in (0, *seeds)}
    recorded = copy.deepcopy(study.settings["recorded"])
    recorded["methods"] = {name: recorded["methods"][name] for name in arms}
    tables = {
        name: table[pd.MultiIndex.from_frame(table[evidence.RUN]).isin(runs)].copy()
        for name, table in study.tables.items()
    }
    return replace(study, settings=study.settings | {"recorded": recorded}, tables=tables)


@pytest.fixture
def published(project, tmp_path, monkeypatch):
    """Function: publish runs one after the other as slices, or one as a whole; returns docs/."""
    study_file = project / f"configs/studies/{STUDY}.yaml"

    def run(name, *parts, is_slice=True):
        docs = tmp_path / name
        monkeypatch.setattr(publish, "DOCS", docs)
        (docs / "tables" / STUDY).mkdir(parents=True, exist_ok=True)
        (docs / "tables" / STUDY / "truth.csv").write_text("method\n", encoding="utf-8")
        for each in parts:
            monkeypatch.setattr(evidence, "of_run", lambda *_, each=each: each)
            publish.publish(tmp_path, STUDY, study_file, is_slice)
        return docs

    return run


def test_slices_by_seed_and_by_arm_give_the_files_of_the_whole_study(
    project, whole, published, tmp_path, capsys
):
    first = part(whole, SEEDS[3:])
    others = [part(whole, SEEDS[:3], ["SFTOnly", "Progressive", "Exact"])]
    others.append(part(whole, SEEDS[:3], ["flatGRPO", "flatGRPO_AA", "ExactShuffled"]))
    docs = published("slices", first, others[0])
    with pytest.raises(UserError, match="contains slices; add --slice or delete games"):
        published("slices", whole, is_slice=False)
    lacking = "flatGRPO, flatGRPO_AA, ExactShuffled: seeds 113, 127, 131"
    assert f"no tables yet; missing: {lacking}\n" in capsys.readouterr().out
    folder = docs / "tables" / STUDY
    assert {path.name for path in folder.iterdir()} == {
        *(evidence.GAMES, evidence.SETTINGS, evidence.EXPERT, evidence.TRAINING, evidence.STOPS),
        "truth.csv",
    }
    for page in ("results", "calibration", "statistics", "published"):
        (docs / f"{page}.md").write_text(
            f"<!-- results {STUDY} -->\n<!-- end -->\n", encoding="utf-8"
        )
    pages = publish.filled(docs, project / "configs/studies")
    assert page_blocks.NOT_PUBLISHED in pages[docs / "results.md"]
    (docs / "sandbox").mkdir()
    (docs / "sandbox/results.md").touch()
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")
    publish.check(docs, project / "configs/studies")
    assert f"{STUDY}: incomplete; missing: {lacking}\n" in capsys.readouterr().out
    published("slices", others[1], others[0])
    assert "missing" not in capsys.readouterr().out
    figures = [
        {path.name for path in (place / "figures" / STUDY).iterdir()}
        for place in (docs, project / "docs")
    ]
    assert figures[0] == figures[1] >= {"forest.svg", "learning_by_play.svg"}
    # Tables are those of the whole study, apart from the settings of the runs.
    here, there = folder, project / "docs/tables" / STUDY
    assert {path.name for path in there.glob("*.*")} - {path.name for path in here.glob("*.*")} == {
        evidence.TUNING
    }
    for path in there.glob("*.csv"):
        table = pd.read_csv(here / path.name)
        assert check_published.differences(table, pd.read_csv(path)) == []


def test_slices_that_do_not_belong_together_are_refused(whole):
    first, second = part(whole, SEEDS[:2]), part(whole, SEEDS[2:4])
    # The supervised policy is in both.
    both = evidence.merged(first, second)
    assert len(both.runs) == 1 + 4 * len(ARMS)
    again = evidence.merged(both, part(whole, SEEDS[1:3], ["Exact"]))
    for name, table in both.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table)

    def refused(changed, words):
        with pytest.raises(UserError, match=words):
            evidence.merged(first, changed)

    other = copy.deepcopy(second)
    other.settings["recorded"]["methods"]["Exact"]["alpha"] = 1.0
    refused(other, "^methods.Exact.alpha: 1.0, but 0.5 in the earlier slices$")
    refused(replace(second, expert=second.expert.replace("0.127", "0.128")), "scripted players")
    for run, name, column in (
        ("SFTOnly", evidence.GAMES, "n_turns"),
        ("Exact", evidence.TRAINING, "dead_groups"),
    ):
        changed = part(whole, SEEDS[1:3])
        table = changed.tables[name]
        table.loc[table.index[table["method"] == run][0], column] += 1
        refused(changed, rf"^{name}: {run}, seed \d+: the results differ from those")
    shorter = part(whole, SEEDS[1:3])
    shorter.tables[evidence.TRAINING] = shorter.tables[evidence.TRAINING].iloc[:-1]
    assert evidence.merged(first, shorter)
    shorter.tables[evidence.TRAINING] = shorter.tables[evidence.TRAINING].iloc[1:]
    refused(shorter, f"^{evidence.TRAINING}: Exact, seed {SEEDS[1]}: the results differ")


def test_rows_of_tuning_are_added_in_one_order(project):
    table = pd.read_csv(project / "docs/tables" / STUDY / evidence.TUNING)
    at_once = evidence.tuning([table])
    parts = [rows for _, rows in table.groupby(["seed", "training.lr"])]
    merged = evidence.tuning(parts[:1])
    # An arm whose settings lack a column adds it.
    for rows in reversed(parts):
        rounded = rows.assign(success=rows["success"] + 1e-16)
        merged = evidence.tuning([merged, rounded.dropna(axis="columns", how="all")])
    assert merged.to_csv(index=False) == at_once.to_csv(index=False)
    assert len(merged) == len(table)
    changed = parts[0].assign(success=parts[0]["success"] + 0.01)
    with pytest.raises(UserError, match="tuning.csv.gz: .*: runs with the same settings"):
        evidence.tuning([merged, changed])
