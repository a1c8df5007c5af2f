"""configs/chat_templates: they stand in for templates of models that do more than append."""

import json
import shutil

import pytest
from chat_models import chat_tokenizer, write_chat

from hgrpo.agent.conversation import conversation_for
from hgrpo.agent.template import ChatTemplate
from hgrpo.errors import UserError

# The shapes that the models' own templates have where there are no tools.
LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n'"
    " + message.content | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
QWEN3 = (
    "{% set ns = namespace(last=0) %}{% for message in messages %}"
    "{% if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{% if message.role == 'assistant' %}"
    "{% if loop.index0 > ns.last %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
    "{{ message.content.split('</think>')[-1].lstrip('\\n') }}"
    "{% else %}{{ message.content }}{% endif %}{{ '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is not defined or not enable_thinking %}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
)
# Gemma 3's; Gemma 2's refuses a system message.
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{% set prefix = messages[0].content + '\\n\\n' %}{% set rest = messages[1:] %}"
    "{% else %}{% set prefix = '' %}{% set rest = messages %}{% endif %}"
    "{% for message in rest %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{% if message.role == 'assistant' %}{% set role = 'model' %}"
    "{% else %}{% set role = message.role %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '')"
    " + message.content | trim + '<end_of_turn>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
FAMILIES = {
    "llama3": (
        LLAMA3,
        ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        "<|eot_id|>",
    ),
    "gemma": (GEMMA, ["<bos>", "<start_of_turn>", "<end_of_turn>"], "<end_of_turn>"),
    "qwen3": (QWEN3, ["<think>", "</think>"], "<|im_end|>"),
}


@pytest.fixture(params=FAMILIES)
def family(request, project, tmp_path):
    """A model's folder with its own template, the file that stands in, and the closing token."""
    template, tokens, closing = FAMILIES[request.param]
    special = request.param != "qwen3"
    write_chat(tmp_path, template, chat_tokenizer(**dict.fromkeys(tokens, special)))
    config = tmp_path / "tokenizer_config.json"
    named = json.loads(config.read_bytes()) | {"bos_token": tokens[0]}
    config.write_text(json.dumps(named), encoding="utf-8")
    return tmp_path, project / f"configs/chat_templates/{request.param}.jinja", closing


def test_the_models_own_template_is_refused_on_one_line_that_names_the_page(family, project):
    folder, shipped, _ = family
    with pytest.raises(UserError) as caught:
        conversation_for(folder)
    assert str(caught.value).endswith(
        f"; copy {shipped.relative_to(project)} to {folder / 'chat_template.jinja'}; see "
        "docs/models.md, Chat templates that are refused"
    )
    page = (project / "docs/models.md").read_text(encoding="utf-8")
    assert "\n### Chat templates that are refused\n" in page


@pytest.mark.parametrize("system", [None, "Answer with one command."])
def test_the_file_that_stands_in_is_taken(family, system):
    folder, shipped, closing = family
    shutil.copy(shipped, folder / "chat_template.jinja")
    conversation = conversation_for(folder, system)
    assert conversation.end_id == conversation.tokenizer.token_to_id(closing)


def test_it_renders_as_the_models_own_template(family):
    folder, shipped, _ = family
    before = ChatTemplate(folder)
    shutil.copy(shipped, folder / "chat_template.jinja")
    after = ChatTemplate(folder)
    for system in (None, "Answer with one command."):
        for replies in ([], ["go"]):
            assert after.render(["a hall"], replies, system) == before.render(
                ["a hall"], replies, system
            )
    # Qwen3's own template drops earlier thoughts, so its later turns differ.
    if shipped.stem != "qwen3":
        messages = ["a hall", "a door", "a coin"], ["go", "open door 1"]
        assert after.render(*messages) == before.render(*messages)
