"""Learning curves of runs from anywhere: what is read, what is refused, what is drawn."""

import json
import sys

import pandas as pd
import pytest

from hgrpo.cli import overlay
from hgrpo.errors import UserError

ROUNDS = [
    {"round": 1, "avg_R": 0.25, "pct_success": 0.5},
    {"round": 2, "avg_R": 0.5, "pct_success": 0.75},
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "methods_comparison.json"
    arms = {name: {"_per_round_eval": ROUNDS} for name in ("TurnRDV2", "flatGRPO")}
    path.write_text(json.dumps(arms), encoding="utf-8")
    return path


def test_runs_are_drawn_and_their_numbers_written(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "o.svg"
    words = ["--run", f"ours={file}:TurnRDV2", "--run", f"a_b & c={file}:flatGRPO", "--out", out]
    monkeypatch.setattr(sys, "argv", ["overlay", *map(str, words)])
    overlay.main()
    first = out.read_bytes()
    overlay.main()
    assert out.read_bytes() == first
    assert b"a_b &amp; c" in first
    table = pd.read_csv(tmp_path / "o.csv")
    assert table["run"].tolist() == ["ours"] * 2 + ["a_b & c"] * 2
    assert table["pct_success"].tolist() == [0.5, 0.75] * 2
    assert "ours, a_b & c" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["{file}", "{file}:only", "{results}", "{results}:only"])
def test_a_path_is_a_file_or_a_results_folder(tmp_path, place):
    """An arm may be left out if there is one, and a path may have a colon in it."""
    file = tmp_path / "a:b/report/methods_comparison.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"only": {"_per_round_eval": ROUNDS}}), encoding="utf-8")
    label, rounds = overlay.read_run("x=" + place.format(file=file, results=tmp_path / "a:b"))
    assert (label, rounds) == ("x", ROUNDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "expected LABEL=PATH or LABEL=PATH:ARM"),
        ("x={file}", "several arms; choose one with :ARM; known: TurnRDV2, flatGRPO"),
        ("x={file}:TurnRD2", "no arm 'TurnRD2'; did you mean 'TurnRDV2'?"),
        ("x={file.parent}:arm", "report/methods_comparison.json: no such file"),
    ],
)
def test_a_mistake_is_named(file, text, message):
    with pytest.raises(UserError) as refused:
        overlay.read_run(text.format(file=file))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a methods_comparison.json"),
        ('{"a": {"_per_round_eval": []}}', "a: rounds: "),
        (
            '{"a": {"_per_round_eval": [{"round": 1, "avg_R": 0.5, "pct_success": 80}]}}',
            "pct_success",
        ),
    ],
)
def test_another_file_is_named(file, content, message):
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=f"^--run x: {file}: .*{message}"):
        overlay.read_run(f"x={file}:a")
