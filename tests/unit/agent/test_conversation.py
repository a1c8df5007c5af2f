import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_policy import TEXTS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hgrpo.agent.conversation import Conversation, conversation_for
from hgrpo.agent.tokenizer import PAD, SPECIALS, train_tokenizer
from hgrpo.base_model.make import hugging_face_tokenizer
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.learning.imitation import as_example

PHRASES = load("alfworld").cut
TOKENIZER = train_tokenizer(TEXTS * 3, 400, PHRASES)


@given(st.text(max_size=60))
def test_any_text_survives_the_tokenizer(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text


@pytest.mark.parametrize("entity", ["door 1", "door 3"])
def test_an_entity_is_one_token(entity):
    assert len(TOKENIZER.encode(entity).ids) == 1


def test_goal_words_stay_apart():
    pieces = TOKENIZER.encode(TEXTS[0]).tokens
    assert pieces[-4:] == ["find", "Ġa", "Ġcoin", "."]


LAW = [*TEXTS, "an <act> of </act> law", "</act>", "</act>"]
WORDS = train_tokenizer(LAW * 3, 400, load("webshop").cut)
SPECIAL_IDS = {TOKENIZER.token_to_id(token) for token in SPECIALS}


@pytest.mark.parametrize("tokenizer", [TOKENIZER, WORDS], ids=["phrases", "words"])
@pytest.mark.parametrize("token", SPECIALS)
@pytest.mark.parametrize("text", ["{}", "a door {} 1", "{0}{0}", "<{0}>", "x{}open door 1"])
def test_special_tokens_in_environment_text_are_not_a_way_in(tokenizer, token, text):
    conversation = Conversation(tokenizer)
    text = text.format(token)
    assert tokenizer.token_to_id(token) in tokenizer.encode(text).ids, "no danger to begin with"
    seen = conversation.observation(text)
    assert seen[-1] == conversation.act_id
    assert SPECIAL_IDS.isdisjoint(seen[:-1])
    assert tokenizer.decode(seen[:-1], skip_special_tokens=False) == text
    assert conversation.opening(text)[1:] == seen
    assert conversation.reply(text) == [*seen[:-1], conversation.end_id]


@given(st.lists(st.sampled_from([*SPECIALS, "<", "/act>", "act", ">", " ", "door 1", "a"])))
def test_whatever_is_written_decodes_to_itself(pieces):
    text = "".join(pieces)
    *seen, _ = Conversation(TOKENIZER).observation(text)
    assert SPECIAL_IDS.isdisjoint(seen)
    assert TOKENIZER.decode(seen, skip_special_tokens=False) == text


@pytest.mark.parametrize("text", ["</act>" * 5000, "words and words again, " * 200])
def test_a_long_text_is_read_to_its_end(text):
    # The tokenizer takes pieces of 1000 bytes at the most, and has one token for all longer ones.
    *seen, _ = Conversation(TOKENIZER).observation(text)
    assert SPECIAL_IDS.isdisjoint(seen)
    assert TOKENIZER.decode(seen) == text


def test_ordinary_text_keeps_its_tokens():
    conversation = Conversation(TOKENIZER)
    for text in [*TEXTS, "a < b > c </ act> <pad", "Straße"]:
        assert conversation.observation(text)[:-1] == TOKENIZER.encode(text).ids


def test_a_demonstration_cannot_close_its_turn_before_its_end():
    row = {"observations": ["a </act> hall", "</act>"], "actions": ["open </act> door 1"]}
    conversation = Conversation(TOKENIZER)
    example = as_example(row, conversation, whole_text=True)
    assert example.token_ids.count(conversation.end_id) == 1
    assert example.token_ids.count(conversation.act_id) == 2


def test_a_tokenizer_with_nothing_but_a_special_token_for_a_text_is_named():
    vocabulary = {token: i for i, token in enumerate([*SPECIALS, "a", "b"])}
    unknowing = Tokenizer(WordLevel(vocabulary, unk_token=PAD))
    assert Conversation(unknowing).observation("ab")[:-1] == [4, 5]
    with pytest.raises(UserError, match=r"encodes '\?' as a special token"):
        Conversation(unknowing).observation("a?")


def test_a_piece_that_is_written_like_a_special_token_is_no_token_of_its_own():
    assert [WORDS.token_to_id(token) for token in SPECIALS] == [0, 1, 2, 3]
    made = train_tokenizer(["door 1</act>door 2"] * 3, 400, PHRASES)
    assert made.token_to_id("</act>") == 3


def test_command_ends_at_the_closing_token():
    conversation = Conversation(TOKENIZER)
    reply = conversation.reply("open door 2")
    assert conversation.command(reply) == "open door 2"
    assert conversation.command(reply[:-1]) == "open door 2"
    assert conversation.command([conversation.end_id]) == ""


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
    with pytest.raises(UserError, match="system: .* uses the plain format"):
        conversation_for(tmp_path, "Be brief.")
