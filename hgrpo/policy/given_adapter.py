"""An SFT policy that somebody trained elsewhere, taken in place of one's own fine-tuning.

Its folder is one that the stage `sft` wrote: `adapter/` with the weights, and `summary.json`, which
says on which base, with which tokenizer and for which environment they were trained. For a LoRA
adapter from another program, write that file by hand (docs/how_to.md).
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from hgrpo.base_model.digest import SUMMARY, identity
from hgrpo.errors import UserError
from hgrpo.policy.compatible import check_policy, policy_files, weights_digest
from hgrpo.policy.saved_weights import finite_weights
from hgrpo.policy.settings import ModelConfig

_SAID = {"base": "base model", "tokenizer": "tokenizer", "env": "environment"}


def trained_on(base: Path, env: str) -> dict[str, str]:
    """What `sft/summary.json` records, so that another study can check the adapter.

    Args:
        base: folder of the base model.
        env: name of the environment.
    """
    return {**identity(base), "env": env}


def summary_digest(folder: Path) -> str:
    """Hash (16 hex digits) of the summary in a given policy's folder, which records its weights.

    Raises:
        OSError: there is no summary.
    """
    return hashlib.sha256((folder / SUMMARY).read_bytes()).hexdigest()[:16]


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
        UserError: the folder is incomplete, the policy was trained on another base, with another
            tokenizer or for another environment, does not fit the model's settings, or holds
            values that are not finite. The message names the file.
    """
    path = folder / SUMMARY
    summary, wanted = _summary(path), trained_on(base, env)
    recorded = summary["trained_on"]
    # The digest of a base covers its tokenizer, so an edited tokenizer is named as such.
    for key in ("env", "tokenizer", "base"):
        if recorded.get(key) != wanted[key]:
            raise UserError(
                f"{path}: trained_on.{key}: {recorded.get(key)!r}, but the study's {_SAID[key]} is "
                f"{wanted[key]!r}"
            )
    adapter = folder / "adapter"
    check_policy(model, base, adapter)
    lora = model.adapt == "lora"
    finite_weights(adapter, lora)
    out.mkdir(parents=True)
    for name in policy_files(lora):
        shutil.copyfile(adapter / name, out / name)
    weights = weights_digest(out)
    if summary.get("weights", weights) != weights:
        raise UserError(
            f"{adapter}: its weights have the hash {weights}, but {path} records "
            f"{summary['weights']}"
        )
    return weights


def _summary(path: Path) -> Mapping:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found["trained_on"], Mapping):
            raise TypeError(f"trained_on: {found['trained_on']!r}")
    except FileNotFoundError:
        raise UserError(
            f"{path}: missing; sft.adapter names a folder that the stage sft wrote, with adapter/ "
            "and summary.json"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path}: it does not say what the adapter was trained on ({error})"
        ) from None
    return found
