"""What a study needs of a machine, and whether the machine has it."""

import importlib.metadata
import itertools
import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from hgrpo.config.user_path import missing
from hgrpo.envs import kinds as environments
from hgrpo.errors import UserError
from hgrpo.study.study import Study
from hgrpo.workflow.preflight import missing_variables, user_paths

# Packages whose versions are always shown; others only if they are lacking.
PACKAGES = ("torch", "transformers", "peft", "tokenizers", "pandas", "pyarrow", "snakemake")
_OWN = "hgrpo"  # an extra may take in another one: "hgrpo[fetch]"
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
        *_packages(study),
        _engine(study),
        *_gpus(study),
        *_keys(study, environment),
        *_data(study),
        _disk(folder),
    ]


def extras(study: Study) -> list[str]:
    """Extras of pyproject.toml that the study needs."""
    credit = [arm.credit.declared.extras for arm in study.methods.values() if arm.train]
    env = environments.load(study.env.name).extras(study.env)
    packaged = ["smollm2"] if study.model.package is not None else []
    wanted = ["train", "workflow", *env, *(extra for each in credit for extra in each), *packaged]
    return list(dict.fromkeys(wanted))


def _packages(study: Study) -> Iterator[Finding]:
    """Those of `PACKAGES`, and any that is missing or older than pyproject.toml asks for."""
    for extra in ["", *extras(study)]:
        for requirement in _requirements(extra):
            name = requirement.name
            try:
                version = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                version = ""
            fits = bool(version) and requirement.specifier.contains(version, prereleases=True)
            if not fits:
                hint = f" (EXTRAS={extra})" if extra not in ("", "train", "workflow") else ""
                found = f"{version or 'not installed'}; {requirement.specifier} is needed{hint}"
                yield Finding(name, found, lacking=True)
            elif name in PACKAGES:
                yield Finding(name, version)


def _requirements(extra: str) -> list[Requirement]:
    """What this project asks for under an extra, or always if the extra is "" ."""
    found = map(Requirement, importlib.metadata.requires(_OWN) or [])
    asked = [
        each
        for each in found
        if (each.marker.evaluate({"extra": extra}) if each.marker else not extra)
    ]
    others = [_requirements(other) for each in asked if each.name == _OWN for other in each.extras]
    return [each for each in asked if each.name != _OWN] + list(itertools.chain(*others))


def _engine(study: Study) -> Finding:
    kind = study.config.engine.kind
    try:
        study.config.engine.engine.check_installed()
    except UserError as error:
        return Finding(f"engine {kind}", str(error), lacking=True)
    names = importlib.metadata.packages_distributions().get(kind, [])
    versions = [f"{name} {importlib.metadata.version(name)}" for name in dict.fromkeys(names)]
    return Finding(f"engine {kind}", ", ".join(versions) or "installed")


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
    """The environment's data files, and the user's model or SFT policy."""
    for file in user_paths(study):
        try:
            gone = missing(file.path, file.key, file.holds)
        except UserError as error:
            yield Finding(file.path, str(error), lacking=True)
            continue
        hint = f"; `make fetch-assets STUDY={study.config.name}` downloads it"
        said = "there" if gone is None else f"there is no {gone}{hint if file.made else ''}"
        yield Finding(file.path, said, lacking=gone is not None)


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    return Finding("disk", f"{free / 1e9:.0f} GB free", lacking=free < LEAST_FREE_BYTES)


def one_step(study: Study) -> list[str]:
    """Words KEY=VALUE that make a run of the study as short as a run of all its stages can be.

    The arms are the one without training, the reference, and the first arm with a fit between
    rounds. With such an arm there are two rounds, because a fit follows every round but the last.
    Other keys that the command line changed keep their values.
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
        "methods": ",".join(methods),
        "seeds": study.config.seeds[0],
        "rounds": 2 if fitted else 1,
        "training.steps_per_round": 1,
        "sft.epochs": min(study.config.sft.epochs, 0.1),
        **games,
        "evaluation.endpoint": "last_round",
        "evaluation.bootstrap": 200,
        "truth": None,
    }
    kept = {
        key: value for key, value in study.overridden.items() if key.partition(".")[0] != "truth"
    }
    words = [f"{key}={_as_text(value)}" for key, value in (kept | changed).items()]
    return [f"study={study.config.name}", *words]


def _as_text(value: object) -> str:
    """A value as `parse_overrides` reads it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
