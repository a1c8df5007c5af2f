"""Tokenizer of the tiny models: text is split into pieces, and frequent pieces become tokens.

A piece is encoded by greedy longest match from left to right (the WordPiece model of `tokenizers`),
with single bytes as fallback. Byte-pair merges are not used, because a long phrase would add many
intermediate tokens that are never emitted. Decoding restores the text, except for three cases:
capital letters if `Cut.lowercase` is set, special tokens in the text, and pieces of more than
`_MAX_PIECE_CHARS` characters. `Conversation` avoids the last two cases.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from hgrpo.errors import UserError
from hgrpo.games.environment import Cut

PAD, START, ACT, END = "<pad>", "<start>", "<act>", "</act>"
SPECIALS = (PAD, START, ACT, END)

_MAX_PIECE_CHARS = 1000


def train_tokenizer(
    texts: Iterable[str], max_vocab: int, cut: Cut, min_count: int = 2
) -> Tokenizer:
    """Build the tokenizer from observations and actions, whose order has no effect.

    Args:
        max_vocab: maximum size of the vocabulary.
        min_count: minimum number of occurrences for a piece to become a token.

    Raises:
        UserError: `max_vocab` is too small for the special tokens, the single bytes and one piece.
    """
    splitter = _splitter(cut.pieces)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = max_vocab - len(SPECIALS) - len(alphabet)
    if room <= 0:
        raise UserError(
            f"max_vocab: must be greater than {max_vocab - room}, the number of special tokens and "
            f"bytes; got {max_vocab}"
        )
    counts = _count(Counter(texts), cut, splitter)
    long = [piece for piece in counts if len(piece) > 1 and piece not in SPECIALS]
    seen = [piece for piece in long if counts[piece] >= min_count]
    frequent = sorted(seen, key=lambda piece: (-counts[piece], piece))
    vocab = {piece: i for i, piece in enumerate([*SPECIALS, *alphabet, *frequent[:room]])}
    limits = {"unk_token": PAD, "max_input_chars_per_word": _MAX_PIECE_CHARS}
    tokenizer = Tokenizer(models.WordPiece(vocab, continuing_subword_prefix="", **limits))
    if cut.lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def _splitter(pieces: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(pieces), behavior="isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, to_bytes])


def _count(texts: Counter[str], cut: Cut, splitter: pre_tokenizers.PreTokenizer) -> Counter[str]:
    goal_splitter = _splitter(cut.goal_pieces) if cut.goal_mark else splitter
    counts: Counter[str] = Counter()
    for text, times in texts.items():
        if cut.lowercase:
            text = text.lower()
        before, mark, goal = text.partition(cut.goal_mark) if cut.goal_mark else (text, "", "")
        pieces = splitter.pre_tokenize_str(before + mark)
        for piece, _ in [*pieces, *goal_splitter.pre_tokenize_str(goal)]:
            counts[piece] += times
    return counts


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a base model; UserError if it is missing or cannot be read."""
    path = Path(folder) / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises no narrower class
        raise UserError(f"{path}: the file is not a valid tokenizer ({error})") from None
