"""A small tokenizer as chat models have it, chat templates, and folders of models with them."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer

START, END = "<|im_start|>", "<|im_end|>"
QWEN_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
TEXTS = (
    "You are in a hall with a door 1 and a door 2. Find it.",
    "open door 1",
    "It is empty.",
)
# The shape that Qwen2.5's template has where there are no tools.
QWEN = (
    "{% if messages[0].role != 'system' %}"
    f"{{{{ '{START}system\\n{QWEN_SYSTEM}{END}\\n' }}}}"
    "{% endif %}"
    "{% for message in messages %}"
    f"{{{{ '{START}' + message.role + '\\n' + message.content + '{END}\\n' }}}}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{{{{ '{START}assistant\\n' }}}}{{% endif %}}"
)
# How the text of each family is cut before its merges.
QWEN_CUT = pre_tokenizers.Split(
    Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    behavior="isolated",
)
SMOLLM_CUT = pre_tokenizers.Digits(individual_digits=True)


def chat_tokenizer(
    family: str = "qwen", texts: Iterable[str] = TEXTS, size: int = 400, **added: bool
) -> Tokenizer:
    """A byte-level BPE of the family's kind, of at most `size` tokens.

    Args:
        texts: what its merges are learned from.
        added: further added tokens, and whether they are special.
    """
    tokenizer = Tokenizer(models.BPE())
    smollm = family == "smollm"
    cut = SMOLLM_CUT if smollm else QWEN_CUT
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=smollm)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, byte_level])
    if not smollm:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>", START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, "user\nassistant\nsystem\n", "\n\n\n"] * 3, trainer)
    tokenizer.add_tokens([AddedToken(token, special=special) for token, special in added.items()])
    return tokenizer


def write_chat(folder: Path, template: str = QWEN, tokenizer: Tokenizer | None = None) -> Path:
    """Write a chat model's tokenizer and template to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (tokenizer or chat_tokenizer()).save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": {"__type": "AddedToken", "content": "<|endoftext|>", "special": True},
        "chat_template": template,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder
