"""CSV files: what a policy samples may be any text."""

import pandas as pd
import pytest

from hgrpo.report.csv_file import write_csv


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("open\rdoor", r"open\rdoor"),
        ('say "a, b"', 'say "a, b"'),
        ("\x00\x0b\x1c\u2028", "\x00\x0b\x1c\u2028"),
    ],
)
def test_any_text_is_one_cell(tmp_path, text, read):
    path = tmp_path / "table.csv"
    table = pd.DataFrame({"turn": [0, 1], "action": [text, "look"], "credit": [0.125, None]})
    write_csv(table, path, "%.2f")
    table_read = pd.read_csv(path, keep_default_na=False, na_values={"credit": ""})
    assert table_read["action"].tolist() == [read, "look"]
    assert table_read["turn"].tolist() == [0, 1]
    assert table_read["credit"].tolist()[0] == 0.12 and table_read["credit"].isna()[1]
    assert table["action"][0] == text


def test_other_cells_are_written_as_they_are(tmp_path):
    numbers = pd.Series([1, None], dtype=object)
    write_csv(pd.DataFrame({"text": ["a\rb", None], "count": numbers}), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == "text,count\na\\rb,1\n,\n"
