"""The tiny model's own tokenizer: an entity such as "countertop 2" is one token.

Text is cut into entities (a word and a number) and the phrases between them; the frequent pieces
become the vocabulary and are matched longest first (the WordPiece model of `tokenizers`). Byte
pair merges were not used: every intermediate merge of a long phrase would take a row of the
embedding that no text ever uses. Whatever is not in the vocabulary falls back to shorter pieces
and at last to single bytes, so decoding gives back every text exactly.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from hgrpo.errors import UserError

PAD, START, ACT, END = "<pad>", "<start>", "<act>", "</act>"
SPECIALS = (PAD, START, ACT, END)

_ENTITY = r"[a-z]+ [0-9]+"
# The goal's words must stay apart, or every goal would be a token of its own.
_GOAL_MARK = "Your task is to: "
_MAX_PIECE_CHARS = 1000


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    pieces = rf"{_ENTITY}|(?:(?!{_ENTITY})(?:.|\n))+"
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def train_tokenizer(texts: Iterable[str], max_vocab: int, min_count: int = 2) -> Tokenizer:
    """Build the tokenizer from environment text.

    Args:
        texts: observations and actions; order does not matter.
        max_vocab: upper bound of the vocabulary, specials and bytes included.
        min_count: a piece seen less often is spelt in smaller pieces.

    Raises:
        UserError: `max_vocab` has no room beyond specials and bytes.
    """
    pre_tokenizer = _pre_tokenizer()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = max_vocab - len(SPECIALS) - len(alphabet)
    if room <= 0:
        raise UserError(f"max_vocab: {max_vocab} leaves no room beyond {max_vocab - room} bytes")
    words = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r" ?[a-zA-Z]+|[^a-zA-Z]+"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    counts: Counter[str] = Counter()
    for text, times in Counter(texts).items():
        before, mark, goal = text.partition(_GOAL_MARK)
        for piece, _ in pre_tokenizer.pre_tokenize_str(before + mark):
            counts[piece] += times
        for piece, _ in words.pre_tokenize_str(goal):
            counts[piece] += times
    frequent = sorted(
        (piece for piece, count in counts.items() if count >= min_count and len(piece) > 1),
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
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a base model's folder.

    Raises:
        UserError: `tokenizer.json` is missing, cannot be read, or lacks a token of the layout.
    """
    path = Path(folder) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise UserError(f"{path}: not a tokenizer ({error})") from None
    lacking = [token for token in (START, ACT, END) if tokenizer.token_to_id(token) is None]
    if lacking:
        raise UserError(
            f"{path}: no token {' '.join(lacking)}, which this project's conversations are made of"
        )
    return tokenizer
