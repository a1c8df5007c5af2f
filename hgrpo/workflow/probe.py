"""What a study needs of a machine, and whether the machine has it."""

import importlib.metadata
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError
from hgrpo.study.study import Study
from hgrpo.workflow.preflight import missing_variables, user_paths

PACKAGES = ("torch", "transformers", "peft", "tokenizers", "pandas", "pyarrow", "snakemake")
# Below this a run of any study is likely to fill the disk. `make plan` says what a run writes.
LEAST_FREE_BYTES = 5 * 10**9


@dataclass(frozen=True)
class Finding:
    """One thing that a study needs.

    Attributes:
        name: what it is.
        found: what the machine has, such as a version; or what is wrong.
        lacking: whether the study cannot run without it.
    """

    name: str
    found: str
    lacking: bool = False


def findings(study: Study, environment: Mapping[str, str], folder: Path) -> list[Finding]:
    """Everything that a study needs of this machine: packages, GPU, engine, keys, data and disk.

    Args:
        study: the study to run.
        environment: environment variables, which may hold keys.
        folder: a folder on the disk that results go to.
    """
    return [
        Finding("python", platform.python_version()),
        *_packages(),
        _engine(study),
        *_gpus(study),
        *_keys(study, environment),
        *_data(study),
        _disk(folder),
    ]


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        try:
            yield Finding(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "not installed", lacking=True)


def _engine(study: Study) -> Finding:
    kind = study.config.engine.kind
    try:
        study.config.engine.engine.check_installed()
    except UserError as error:
        return Finding(f"engine {kind}", str(error), lacking=True)
    return Finding(f"engine {kind}", "installed")


def _gpus(study: Study) -> Iterator[Finding]:
    """The GPUs that PyTorch sees; nothing if no job of the study asks for one."""
    wanted = max(stage.gpu for stage in dict(study.config.resources).values())
    if not wanted:
        return
    try:
        # Imported here: it takes a second, and most studies need no GPU.
        import torch
    except ImportError:
        return  # it is among the packages that are lacking
    there = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    found = ", ".join(there) or "none that PyTorch sees"
    yield Finding(f"GPU ({wanted} for a job)", found, lacking=len(there) < wanted)


def _keys(study: Study, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Each variable once, with all methods that need it."""
    needing: dict[str, list[str]] = {}
    for method in study.methods.values():
        for name in method.credit.declared.environment_variables if method.train else ():
            needing.setdefault(name, []).append(method.name)
    for name, methods in needing.items():
        lacking = name in missing_variables(study.methods[methods[0]], environment)
        found = f"not set; needed by {', '.join(methods)}" if lacking else "set"
        yield Finding(name, found, lacking)


def _data(study: Study) -> Iterator[Finding]:
    for file in user_paths(study):
        try:
            place = user_path(file.path, file.key)
        except UserError as error:
            yield Finding(file.path, str(error), lacking=True)
            continue
        there = (place / file.holds).exists()
        if file.made and not (there and any(place.rglob("*"))):
            found = f"not there; `make fetch-assets STUDY={study.config.name}` downloads it"
            yield Finding(file.path, found, lacking=True)
        else:
            yield Finding(file.path, "there" if there else "not there", lacking=not there)


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    return Finding("disk", f"{free / 1e9:.0f} GB free", lacking=free < LEAST_FREE_BYTES)


def one_step(study: Study) -> list[str]:
    """Words KEY=VALUE that make a run of the study as short as a run of all its stages can be.

    The arms are the one without training, the reference, and the first arm with a fit between
    rounds. With such an arm there are two rounds, because a fit follows every round but the last.
    """
    untrained = [name for name, arm in study.methods.items() if not arm.train]
    fitted = [name for name, arm in study.methods.items() if arm.credit.declared.fits]
    lead = study.config.reference if study.has_reference else next(iter(study.round_trajectories))
    methods = dict.fromkeys([*untrained, lead, *fitted[:1]])
    games = {
        f"evaluation.{panel}_games": min(size, 4)
        for panel, size in study.config.evaluation.panel_sizes.items()
    }
    changed = {
        "training.steps_per_round": 1,
        "sft.epochs": min(study.config.sft.epochs, 0.1),
        **games,
        "evaluation.endpoint": "last_round",
        "evaluation.bootstrap": 200,
        "truth": "null",
    }
    return [
        f"study={study.config.name}",
        f"methods={','.join(methods)}",
        f"seeds={study.config.seeds[0]}",
        f"rounds={2 if fitted else 1}",
        *(f"{key}={value}" for key, value in changed.items()),
    ]
