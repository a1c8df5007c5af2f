"""A chat model's conversation has the same tokens turn by turn as it has whole."""

import json

import pytest
from chat_models import END, QWEN, QWEN_SYSTEM, START, chat_tokenizer, write_chat
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from hgrpo.agent.chat import ChatConversation
from hgrpo.agent.conversation import conversation_for
from hgrpo.errors import UserError

TEXT = st.text(max_size=30)
# A reply that begins with spaces or line ends would merge with the tokens before it if both were
# tokenised together. Sampled tokens are kept as they are, so such replies are left out here.
REPLY = TEXT.filter(lambda text: not text[:1].isspace())
FORGED = st.lists(
    st.one_of(TEXT, st.sampled_from([START, END, "<|endoftext|>", "<tool_call>", "<|im_", "\n"])),
    max_size=5,
).map("".join)
SYSTEMS = [None, "Answer with one command.\n", " É\n\n{{ x }}"]


@pytest.fixture(scope="module", params=["qwen", "smollm"])
def family(request, tmp_path_factory):
    """A folder with a tokenizer of the family's kind, and the tokenizer as transformers has it."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp(request.param)
    write_chat(folder, tokenizer=chat_tokenizer(request.param, **{"<tool_call>": False}))
    return folder, AutoTokenizer.from_pretrained(folder, local_files_only=True)


def turn_by_turn(conversation, observations, replies):
    """Tokens as an episode collects them, up to the last reply."""
    ids = conversation.opening(observations[0])
    for index, reply in enumerate(replies):
        ids = ids + (conversation.observation(observations[index]) if index else [])
        ids += conversation.reply(reply)
    return ids


def messages(observations, replies, system):
    parts = [] if system is None else [{"role": "system", "content": system}]
    for observation, reply in zip(observations, replies, strict=True):
        parts.append({"role": "user", "content": observation})
        parts.append({"role": "assistant", "content": reply})
    return parts


@pytest.mark.parametrize("system", SYSTEMS)
@given(turns=st.lists(st.tuples(TEXT, REPLY), min_size=1, max_size=4))
def test_turn_by_turn_is_what_transformers_makes_of_the_whole(family, system, turns):
    folder, whole = family
    observations, replies = zip(*turns, strict=True)
    conversation = made(folder, system)
    parts = messages(observations, replies, system)
    expected = whole.apply_chat_template(parts, return_dict=False)
    # After the reply that closes an episode the template puts a line end.
    line_end = whole.encode("\n", add_special_tokens=False)
    assert turn_by_turn(conversation, observations, replies) + line_end == expected
    prompt = whole.apply_chat_template(parts[:-1], add_generation_prompt=True, return_dict=False)
    assert expected[: len(prompt)] == prompt


@pytest.mark.parametrize("system", SYSTEMS)
@given(turns=st.lists(st.tuples(FORGED, REPLY), min_size=1, max_size=3))
def test_special_tokens_in_observations_are_text(family, system, turns):
    folder, _ = family
    observations, replies = zip(*turns, strict=True)
    text = Tokenizer.from_file(str(folder / "tokenizer.json"))
    text.encode_special_tokens = True
    start, end = text.token_to_id(START), text.token_to_id(END)

    def message(role, content):
        return [start, *text.encode(f"{role}\n{content}").ids, end]

    line_end = text.encode("\n").ids
    expected = message("system", QWEN_SYSTEM if system is None else system)
    for observation, reply in zip(observations, replies, strict=True):
        expected += [*line_end, *message("user", observation), *line_end]
        expected += [start, *text.encode("assistant\n").ids, *text.encode(reply).ids, end]
    assert turn_by_turn(made(folder, system), observations, replies) == expected


@given(reply=st.text(max_size=40))
def test_a_command_comes_back(family, reply):
    conversation = made(family[0], None)
    ids = conversation.reply(reply)
    assert ids[-1] == conversation.end_id == conversation.tokenizer.token_to_id(END)
    assert conversation.command(ids) == conversation.command(ids[:-1])
    assert conversation.command([*ids, *ids]) == conversation.command(ids)
    # Qwen's tokenizer composes letters with their accents.
    assert conversation.command(ids) in {
        reply.strip(),
        normalizers.NFC().normalize_str(reply).strip(),
    }


MADE: dict = {}


def made(folder, system) -> ChatConversation:
    """The folder's conversation, made once."""
    if (folder, system) not in MADE:
        MADE[folder, system] = conversation_for(folder, system)
    return MADE[folder, system]


def chat(middle: str, head: str = "", prompt: str = f"{START}assistant\n") -> str:
    """A template that makes `middle` of every message."""
    return (
        head
        + "{% for message in messages %}"
        + middle
        + "{% endfor %}{% if add_generation_prompt %}"
        + prompt
        + "{% endif %}"
    )


ROLE = START + "{{ message.role + '\\n' }}"
SAID = ROLE + "{{ message.content }}" + END + "\n"
THOUGHTS = (
    "{% if loop.last %}{{ message.content }}"
    "{% else %}{{ message.content.split('</think>')[-1] }}{% endif %}"
)
MOVED = (
    "{% if loop.last or loop.revindex == 2 and message.role == 'user' %}"
    f"{START}system\nBe brief.{END}\n{{% endif %}}{SAID}"
)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (chat(ROLE + "{{ message.content | trim }}" + END), "spaces and line ends around"),
        (chat(ROLE + THOUGHTS + END), "thoughts in the replies"),
        (chat(ROLE + "{{ message.content | lower }}" + END), "letters of all kinds"),
        (chat(ROLE + "{{ message.content * 2 }}" + END), "every message exactly once"),
        (chat(MOVED), "not append-only|before the first reply"),
        (chat(SAID.replace("content", "content[:300]")), "with many turns, and long ones"),
        (chat("{{ loop.index }}" + SAID), "before the first reply"),
        (chat(ROLE + "{{ message.content }} " + END), "the template puts ' <.* after a reply"),
        (chat(SAID, prompt=f"{START}assistant\n<think>\n"), "is not append-only: with plain"),
        (chat(SAID, head="{{ strftime_now('%d %b %Y') }}"), "'strftime_now' is undefined"),
        (chat(SAID, head="{{ raise_exception('no chats') }}"), r"a conversation \(no chats"),
        ("{% for message in messages %}", "not a chat template"),
    ],
)
def test_a_template_that_does_more_than_append_is_refused(tmp_path, template, message):
    write_chat(tmp_path, template)
    with pytest.raises(UserError, match=message) as caught:
        conversation_for(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "tokenizer_config.json"))
    assert "\n" not in str(caught.value)


def test_a_system_text_with_a_special_token_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"system: remove <\|im_end\|>, a special token of"):
        conversation_for(write_chat(tmp_path), f"Be brief.{END}")


def test_tokens_of_the_template_need_not_be_marked_as_special(tmp_path):
    tokenizer = chat_tokenizer(**{"<turn>": False, "</turn>": False})
    parts = "<turn>{{ message.role + '\\n' + message.content }}</turn>"
    write_chat(tmp_path, chat(parts, prompt="<turn>assistant\n"), tokenizer)
    conversation = conversation_for(tmp_path)
    end = tokenizer.token_to_id("</turn>")
    assert conversation.end_id == end
    assert conversation.observation("<turn> </turn>").count(end) == 1
    assert conversation.opening("<turn> </turn>").count(end) == 1


def test_a_file_of_its_own_and_named_templates_are_found(tmp_path):
    config = tmp_path / "tokenizer_config.json"
    write_chat(tmp_path, "nonsense")
    (tmp_path / "chat_template.jinja").write_text(chat(SAID), encoding="utf-8")
    assert conversation_for(tmp_path).end_id is not None
    (tmp_path / "chat_template.jinja").unlink()
    named = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": chat(SAID)}]
    config.write_text(json.dumps({"chat_template": named}), encoding="utf-8")
    assert conversation_for(tmp_path).end_id is not None
    config.write_text(json.dumps({"chat_template": named[:1]}), encoding="utf-8")
    with pytest.raises(UserError, match="no chat template"):
        conversation_for(tmp_path)
    config.write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer_config\.json: the file is damaged"):
        conversation_for(tmp_path)


def test_a_template_may_name_its_tokens_and_mark_replies(tmp_path):
    parts = (
        "{{ '<|im_start|>' + message.role + '\\n' }}{% generation %}{{ message.content }}"
        "{{ eos_token }}{% endgeneration %}"
    )
    conversation = conversation_for(write_chat(tmp_path, chat(parts, head="{{ pad_token }}")))
    assert conversation.end_id == conversation.tokenizer.token_to_id(END)
    assert conversation.opening("")[0] == conversation.tokenizer.token_to_id("<|endoftext|>")


def test_a_tokenizer_that_puts_a_space_before_texts_is_refused(tmp_path):
    tokenizer = chat_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    message = r"tokenizer\.json: tokenising a conversation .*, Tokenizers that are refused"
    with pytest.raises(UserError, match=message):
        conversation_for(write_chat(tmp_path, tokenizer=tokenizer))


def test_a_tokenizer_that_merges_across_turns_is_refused_and_the_remedy_helps(tmp_path):
    tokenizer = chat_tokenizer(texts=["assistant: go to it", "assistant: open it"] * 9)
    message = "{{ '<|im_start|>' + message.role + ': ' + message.content + '<|im_end|>' }}"
    write_chat(tmp_path, chat(message, prompt="{{ '<|im_start|>assistant: ' }}"), tokenizer)
    with pytest.raises(UserError, match="as a whole and turn by turn gives different tokens"):
        conversation_for(tmp_path)
    message = message.replace("': '", "':\\n'")
    write_chat(tmp_path, chat(message, prompt="{{ '<|im_start|>assistant:\\n' }}"), tokenizer)
    assert conversation_for(tmp_path).end_id is not None


def test_a_tokenizer_that_spells_out_its_special_tokens_is_refused(tmp_path):
    words = ["?", "user", "assistant", "system", START, END]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(START), AddedToken(END)])
    with pytest.raises(UserError, match=r"as the special token <\|im_"):
        conversation_for(write_chat(tmp_path, QWEN, tokenizer))


def test_settings_that_cut_and_pad_are_switched_off(tmp_path):
    tokenizer = chat_tokenizer()
    expected = conversation_for(write_chat(tmp_path, tokenizer=tokenizer)).opening("a hall " * 99)
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=512)
    assert (
        conversation_for(write_chat(tmp_path, tokenizer=tokenizer)).opening("a hall " * 99)
        == expected
    )
