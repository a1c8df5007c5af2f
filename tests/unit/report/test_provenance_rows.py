"""The report's section on provenance: what colleagues gave."""

import json

import pytest

from hgrpo.errors import UserError
from hgrpo.report.provenance_rows import imported_rows


def test_provenance_lists_what_colleagues_gave():
    parts = [
        {"part": "sft", "seeds": [], "archive": "start.tar", "revision": None},
        {"part": "LLMJudge", "seeds": [11, 23], "archive": "ben.tar", "revision": "abc1234"},
        {"part": "LLMJudge", "seeds": [31], "archive": "dan.tar", "revision": "abc1234"},
    ]
    judge = [
        "seeds 11, 23, from ben.tar, revision abc1234",
        "seed 31, from dan.tar, revision abc1234",
    ]
    assert imported_rows(json.dumps(parts)) == [
        ("imported", [("sft", ["from start.tar, revision unknown"]), ("LLMJudge", judge)])
    ]
    assert imported_rows("") == []
    for wrong in ("[", "[1]", "{}x", '[{"part": "sft"}]'):
        with pytest.raises(UserError, match="--imported: a list of imports was expected"):
            imported_rows(wrong)
