"""Text files of the user in another encoding: one line names the file and says UTF-8."""

from pathlib import Path

import pytest

from hgrpo.agent.template import ChatTemplate
from hgrpo.cli.entry import read_config
from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.games.sokoban.files import level_text
from hgrpo.report.page_rows import read_mapping
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import make_task
from hgrpo.workflow.planning.profile import read_profile

READERS = {
    "chat_template.jinja": lambda path: ChatTemplate(path.parent),
    "tokenizer_config.json": lambda path: ChatTemplate(path.parent),
    "special_tokens_map.json": lambda path: ChatTemplate(path.parent),
    "settings.yaml": lambda path: read_config(str(path)),
    "settings.json": lambda path: read_config(str(path)),
    "study.yaml": read_yaml,
    "summary.json": read_mapping,
    "config.yaml": lambda path: read_profile(path.parent),
    "levels.xsb": lambda path: level_text(path.parent, "levels.xsb#0"),
    "words.txt": lambda path: make_task(RlSettings(task="lm_bandit", data=str(path))),
}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("name", READERS)
def test_a_file_in_another_encoding_is_named(tmp_path: Path, name: str, encoding: str):
    path = tmp_path / name
    path.write_bytes("a: 1\nb: grün\n".encode(encoding))
    with pytest.raises(UserError) as refused:
        READERS[name](path)
    line = 2 if encoding == "latin-1" else 1
    assert str(refused.value) == f"{path}:{line}: the text is not UTF-8; save the file in UTF-8"


def test_a_byte_order_mark_is_no_text(tmp_path: Path):
    path = tmp_path / "study.yaml"
    path.write_text("name: grün\n", encoding="utf-8-sig")
    assert read_yaml(path) == read_config(str(path)) == {"name": "grün"}
