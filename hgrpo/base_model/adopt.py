"""Taking over an existing base model: its files checked, then linked, copied or joined."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hgrpo.agent.choose_conversation import conversation_for
from hgrpo.base_model.check_weights import check_base_weights
from hgrpo.base_model.companions import BESIDE
from hgrpo.base_model.foreign_code import plain_config
from hgrpo.base_model.safetensors_file import INDEX, WEIGHTS, join, shards
from hgrpo.errors import UserError

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def take_over(
    source: Path,
    out: Path,
    system: str | None = None,
    check: Callable[[Path], None] | None = None,
) -> None:
    """Put the model in the folder `source` into `out`, with all weights in `model.safetensors`.

    Weights in one file become a hard link to it, where the file system and its owner allow that,
    and a copy elsewhere; weights in several files are joined into one. Nothing but safetensors is
    read, and no code of the model's is run.

    Args:
        source: folder in Hugging Face format.
        out: folder to fill.
        system: system text that conversations will have.
        check: called with `source` when its config was read, before any weights are; may raise.

    Raises:
        UserError: naming the file: it is missing or damaged, weights are pickled or quantised, the
            model brings its own code, its weights are not what its config asks for or not enough
            for its tokenizer (`check_base_weights`), or its conversations cannot be had
            (`conversation_for`).
    """
    for name in ("config.json", "tokenizer.json"):
        if not (source / name).is_file():
            raise UserError(
                f"no {name} there; the folder of a Hugging Face model was expected, not a name on "
                "the hub"
            )
    parts = _weights(source)
    _check_config(source / "config.json")
    if check is not None:
        check(source)
    conversation_for(source, system)
    check_base_weights(source, parts)
    for name in BESIDE:
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)
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
            f"{pickled[0]} holds pickled weights, which can run code when they are read; only "
            f"{WEIGHTS} is, whole or with {INDEX}"
        )
    raise UserError(f"no {WEIGHTS} there, nor {INDEX}")


def _check_config(path: Path) -> None:
    config = plain_config(path, path.name)
    if "quantization_config" in config:
        raise UserError(
            "config.json: quantization_config: the weights are quantised; training needs plain ones"
        )


def _link(source: Path, target: Path) -> None:
    # In the hub's cache files are links themselves.
    source = source.resolve()
    try:
        # Snakemake sets the time of what a job wrote; another user's file must keep its own.
        if source.stat().st_uid == os.getuid():
            os.link(source, target)
            return
    except OSError:
        pass
    shutil.copyfile(source, target)
