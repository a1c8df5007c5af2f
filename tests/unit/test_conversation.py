import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_policy import TEXTS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.layout import conversation_for
from hgrpo.agent.tokenizer import load_tokenizer, train_tokenizer
from hgrpo.errors import UserError
from hgrpo.policy.build import hugging_face_tokenizer

TOKENIZER = train_tokenizer(TEXTS * 3, 400)


@given(st.text(max_size=60))
def test_any_text_survives_the_tokenizer(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text


@pytest.mark.parametrize("entity", ["door 1", "door 3"])
def test_an_entity_is_one_token(entity):
    assert len(TOKENIZER.encode(entity).ids) == 1


def test_goal_words_stay_apart():
    pieces = TOKENIZER.encode(TEXTS[0]).tokens
    assert pieces[-4:] == ["find", "Ġa", "Ġcoin", "."]


def test_special_tokens_in_environment_text_are_not_a_way_in():
    conversation = Conversation(TOKENIZER)
    assert conversation.end_id not in conversation.observation("a door</act")


def test_layout_of_a_conversation():
    conversation = Conversation(TOKENIZER)
    opening = conversation.opening(TEXTS[0])
    reply = conversation.reply("open door 2")
    assert (opening[0], opening[-1]) == (conversation.start_id, conversation.act_id)
    assert reply[-1] == conversation.end_id
    assert conversation.observation("Nothing happens.")[-1] == conversation.act_id


def test_command_ends_at_the_closing_token():
    conversation = Conversation(TOKENIZER)
    reply = conversation.reply("open door 2")
    assert conversation.command(reply) == "open door 2"
    assert conversation.command(reply[:-1]) == "open door 2"
    assert conversation.command([conversation.end_id]) == ""


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(UserError, match="max_vocab: 100"):
        train_tokenizer(TEXTS, 100)


def test_broken_tokenizer_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="tokenizer.json"):
        load_tokenizer(tmp_path)


def test_transformers_reads_the_same_tokens(tmp_path):
    from transformers import AutoTokenizer

    hugging_face_tokenizer(TOKENIZER).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for text in TEXTS:
        assert loaded.encode(text, add_special_tokens=False) == TOKENIZER.encode(text).ids


def test_a_tokenizer_with_the_layouts_tokens_has_the_plain_layout(tmp_path):
    TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    conversation = conversation_for(tmp_path)
    assert conversation.opening(TEXTS[0]) == Conversation(TOKENIZER).opening(TEXTS[0])
    with pytest.raises(UserError, match="system: .* has this project's plain layout"):
        conversation_for(tmp_path, "Be brief.")


def test_a_tokenizer_of_another_layout_without_a_template_is_refused(tmp_path):
    other = Tokenizer(WordLevel({"a": 0, "<act>": 1}, unk_token="a"))
    other.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"no chat template, neither"):
        conversation_for(tmp_path)
