"""`make lint` fails on every text file that is opened in the locale's encoding."""

import runpy

import pytest


@pytest.fixture
def unnamed(project):
    return runpy.run_path(str(project / "workflow_scripts/lint_encodings.py"))["unnamed"]


@pytest.mark.parametrize(
    "call",
    [
        "(a / b).read_text()",
        "self.path.write_text(json.dumps(x))",
        "paths[0].read_text(errors='replace')",
        "path.open()",
        "(a / b).open('w')",
        "path.open('a+t')",
        "subprocess.run(words, text=True)",
    ],
)
def test_a_call_without_an_encoding_is_named(unnamed, call):
    assert [line for line, _ in unnamed(f"x = 1\n{call}\n")] == [2]


@pytest.mark.parametrize(
    "call",
    [
        "path.read_text(encoding='utf-8')",
        "path.write_text(text, encoding='utf-8')",
        "path.read_bytes()",
        "path.open('rb')",
        "archive.open(name)",
        "os.open(path, os.O_RDONLY)",
        "subprocess.run(words, encoding='utf-8')",
        "Settings(text=True)",
    ],
)
def test_other_calls_pass(unnamed, call):
    assert list(unnamed(call)) == []
