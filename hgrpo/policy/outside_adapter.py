"""Imports a policy that was trained elsewhere, in place of the SFT stage.

The policy's folder has the layout of the `sft` stage's output: `adapter/` contains the weights, and
`summary.json` records the base model, the tokenizer and the environment. For a LoRA adapter from
another program, write `summary.json` by hand (docs/how_to.md).
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from hgrpo.base_model.digest import SUMMARY, identity
from hgrpo.base_model.safetensors_file import file_digest
from hgrpo.errors import UserError
from hgrpo.policy.compatible import LORA_CONFIG, check_policy, policy_files, weights_digest
from hgrpo.policy.settings import ModelConfig

# The dropout of an imported adapter is not checked, because training sets it to 0.
_DROPOUT = "lora_dropout"


def trained_on(base: Path, env: str) -> dict[str, str]:
    """The entry `trained_on` of `sft/summary.json`, with which other studies check the adapter."""
    return {**identity(base), "env": env}


def adapter_digest(folder: Path) -> str:
    """Hash (16 hex digits) of the files that are imported from a policy's folder.

    The weights are represented by their hash in `summary.json`, which `take_adapter` verifies. If
    `summary.json` has no such hash, e.g. because it was written by hand, the weights files are
    hashed.

    Raises:
        OSError: a file is missing.
    """
    summary = (folder / SUMMARY).read_bytes()
    digest = hashlib.sha256(summary)
    for config, weights in map(policy_files, (True, False)):
        for name in [config] if b'"weights"' in summary else [config, weights]:
            if (path := folder / "adapter" / name).is_file():
                digest.update(file_digest(path).encode())
    return digest.hexdigest()[:16]


def take_adapter(folder: Path, model: ModelConfig, base: Path, env: str, out: Path) -> str:
    """Check the policy in `folder`, and copy its files to the folder `out`.

    Args:
        folder: the user's folder.
        model: the study's model.
        base: folder of the study's base model.
        env: name of the study's environment.

    Returns:
        The hash (16 hex digits) of the policy's weights.

    Raises:
        UserError: the folder is incomplete; the policy was trained with another base, tokenizer or
            environment; its weights do not match the model's settings; or a weight is not finite.
    """
    path = folder / SUMMARY
    summary, ours = _summary(path), trained_on(base, env)
    recorded = summary["trained_on"]
    # Compare tokenizers before bases. If the tokenizers differ, the digests of the bases differ
    # too, but an error about the tokenizer is clearer.
    for key in ("env", "tokenizer", "base"):
        if recorded.get(key) != ours[key]:
            raise UserError(
                f"{path}: trained_on.{key}: {recorded.get(key)!r}, but the study has {ours[key]!r}"
            )
    adapter = folder / "adapter"
    check_policy(model, base, adapter, ignored={_DROPOUT})
    weights = weights_digest(adapter)
    if summary.get("weights", weights) != weights:
        raise UserError(
            f"{adapter}: the weights have hash {weights}, but {path} records {summary['weights']}"
        )
    _check_weights(model, base, adapter)
    out.mkdir(parents=True)
    for name in policy_files(model.adapt == "lora"):
        shutil.copyfile(adapter / name, out / name)
    if model.adapt == "lora":
        config = json.loads((out / LORA_CONFIG).read_bytes())
        text = json.dumps(config | {_DROPOUT: 0.0}, indent=2) + "\n"
        (out / LORA_CONFIG).write_text(text, encoding="utf-8")
    return weights


def _check_weights(model: ModelConfig, base: Path, adapter: Path) -> None:
    # This import is local, because planning calls `adapter_digest` and must not import torch.
    from hgrpo.policy.load import check_tensors
    from hgrpo.policy.saved_weights import finite_weights, load_model

    lora = model.adapt == "lora"
    finite_weights(adapter, lora)
    if lora:
        check_tensors(load_model(base, model), model.lora, adapter)
    else:
        load_model(adapter, model)


def _summary(path: Path) -> Mapping:
    try:
        summary = json.loads(path.read_bytes())
        if not isinstance(summary["trained_on"], Mapping):
            raise TypeError(f"trained_on: {summary['trained_on']!r}")
    except OSError as error:
        raise UserError(
            f"sft.adapter: {path}: {error.strerror}; set `sft.adapter` to an output folder "
            "of the sft stage, which contains adapter/ and summary.json"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path}: trained_on: expected a mapping ({error})") from None
    return summary
