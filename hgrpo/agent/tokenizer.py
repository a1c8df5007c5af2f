"""The tiny model's own tokenizer: text is cut into pieces, and the frequent ones are its tokens.

Two ways to cut:

- `phrases`, for ALFWorld: an entity such as "countertop 2" (a word and a number), and the phrases
  between entities. The goal's words stay apart, or every goal would be a token of its own.
- `words`, for WebShop: words, whole numbers, and generated asins ("b0kamo"), all in lower case,
  which the shop does not mind.

Pieces of the vocabulary are matched longest first (the WordPiece model of `tokenizers`). Byte pair
merges were not used: every intermediate merge of a long phrase would take a row of the embedding
that no text ever uses. Whatever is not in the vocabulary falls back to shorter pieces and at last
to single bytes, so decoding gives back every text, capitals apart where they were lowered.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from hgrpo.errors import UserError

PAD, START, ACT, END = "<pad>", "<start>", "<act>", "</act>"
SPECIALS = (PAD, START, ACT, END)
Cut = Literal["phrases", "words"]

_ENTITY = r"[a-z]+ [0-9]+"
_PHRASES = rf"{_ENTITY}|(?:(?!{_ENTITY})(?:.|\n))+"
_GOAL_MARK = "Your task is to: "
_GOAL_WORDS = r" ?[a-zA-Z]+|[^a-zA-Z]+"
_ASIN = r"\bb0[a-z]{2,8}\b"
_WORDS = rf"{_ASIN}| ?\[sep\] ?| ?\$?[0-9]+|\.[0-9]+| ?[a-z']+|.|\n"
_MAX_PIECE_CHARS = 1000


def train_tokenizer(
    texts: Iterable[str], max_vocab: int, cut: Cut = "phrases", min_count: int = 2
) -> Tokenizer:
    """Build the tokenizer from environment text.

    Args:
        texts: observations and actions; order does not matter.
        max_vocab: upper bound of the vocabulary, specials and bytes included.
        min_count: a piece seen less often is spelt in smaller pieces.

    Raises:
        UserError: `max_vocab` has no room beyond specials and bytes.
    """
    pre_tokenizer = _splitter(_WORDS if cut == "words" else _PHRASES)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = max_vocab - len(SPECIALS) - len(alphabet)
    if room <= 0:
        raise UserError(f"max_vocab: {max_vocab} leaves no room beyond {max_vocab - room} bytes")
    count = _count_words if cut == "words" else _count_phrases
    counts = count(Counter(texts), pre_tokenizer)
    frequent = sorted(
        (
            piece
            for piece, count in counts.items()
            if count >= min_count and len(piece) > 1 and piece not in SPECIALS
        ),
        key=lambda piece: (-counts[piece], piece),
    )
    vocab = {piece: i for i, piece in enumerate([*SPECIALS, *alphabet, *frequent[:room]])}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocab,
            unk_token=PAD,
            continuing_subword_prefix="",
            max_input_chars_per_word=_MAX_PIECE_CHARS,
        )
    )
    if cut == "words":
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def _splitter(pieces: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _count_words(texts: Counter[str], splitter: pre_tokenizers.PreTokenizer) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, times in texts.items():
        for piece, _ in splitter.pre_tokenize_str(text.lower()):
            counts[piece] += times
    return counts


def _count_phrases(texts: Counter[str], splitter: pre_tokenizers.PreTokenizer) -> Counter[str]:
    words = _splitter(_GOAL_WORDS)
    counts: Counter[str] = Counter()
    for text, times in texts.items():
        before, mark, goal = text.partition(_GOAL_MARK)
        for piece, _ in splitter.pre_tokenize_str(before + mark):
            counts[piece] += times
        for piece, _ in words.pre_tokenize_str(goal):
            counts[piece] += times
    return counts


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a base model's folder.

    Raises:
        UserError: `tokenizer.json` is missing or cannot be read.
    """
    path = Path(folder) / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise UserError(f"{path}: not a tokenizer ({error})") from None
