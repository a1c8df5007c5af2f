"""What a study needs of a machine, and whether the machine has it."""

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from hgrpo.config.user_path import missing, user_path
from hgrpo.envs import kinds as environments
from hgrpo.errors import UserError
from hgrpo.store.entry import sha256
from hgrpo.store.plan import Plan
from hgrpo.study.study import Study
from hgrpo.workflow.packages import Finding, checked_packages, plugins
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import size
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.preflight import UserPath, ask_slurm, missing_variables, user_paths

# Owner of every model on the Hugging Face hub whose name begins like this.
_HUB_OWNER = "Qwen"


def findings(
    study: Study, environment: Mapping[str, str], folder: Path, profile: Profile
) -> list[Finding]:
    """Everything that a study needs: packages, plug-ins, GPU, engine, keys, data and disk.

    Slurm's nodes share this machine's disk, and so its packages and data, but not its GPUs. Pods
    share nothing.

    Args:
        study: the study to run.
        environment: environment variables, which may hold keys.
        folder: the project's folder, on the disk that results go to.
        profile: the profile that a run would use.
    """
    here = [Finding("python", platform.python_version()), *plugins(profile.executor)]
    if profile.executor == "slurm":
        answers, text = ask_slurm()
        here.append(Finding("sinfo", text, lacking=not answers))
    keys = _keys(study, environment)
    if profile.in_bucket:
        image = Finding("pods", "packages, engine, GPU and data: needed in their image", None)
        return [*here, *checked_packages(["workflow"]), image, *keys]
    needed = [
        *checked_packages(extras(study)),
        _engine(study),
        *_gpus(study, profile.executor),
        *keys,
    ]
    return [*here, *needed, *_data(study), _disk(study, folder)]


def extras(study: Study) -> list[str]:
    """Extras of pyproject.toml that the study needs."""
    credit = [arm.credit.declared.extras for arm in study.methods.values() if arm.train]
    env = environments.load(study.env.name).extras(study.env)
    packaged = ["smollm2"] if study.model.package is not None else []
    wanted = ["train", "workflow", *env, *(extra for each in credit for extra in each), *packaged]
    return list(dict.fromkeys(wanted))


def _engine(study: Study) -> Finding:
    kind = study.config.engine.kind
    try:
        study.config.engine.engine.check_installed()
    except UserError as error:
        return Finding(f"engine {kind}", str(error), lacking=True)
    names = importlib.metadata.packages_distributions().get(kind, [])
    versions = [f"{name} {importlib.metadata.version(name)}" for name in dict.fromkeys(names)]
    return Finding(f"engine {kind}", ", ".join(versions) or "installed")


def _gpus(study: Study, executor: str) -> Iterator[Finding]:
    """The GPUs that PyTorch sees; nothing if no job of the study asks for one."""
    wanted = max(stage.gpu for stage in dict(study.config.resources).values())
    name = f"GPU ({wanted} for a job)"
    if not wanted:
        return
    if executor != "local":
        yield Finding(name, "needed on the nodes, not on this machine", None)
        return
    try:
        # Imported here: it takes a second, and most studies need no GPU.
        import torch
    except ImportError:
        return  # it is among the packages that are lacking
    seen = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    there = [f"{gpu.name} with {gpu.total_memory / 2**30:.0f} GiB" for gpu in seen]
    found = ", ".join(there) or "none that PyTorch sees"
    yield Finding(name, found, lacking=len(there) < wanted)


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
        remedy = _remedy(file, study)
        try:
            gone = missing(file.path, file.key, file.holds)
        except UserError as error:
            hint = f"; set it, then {remedy}" if remedy else ""
            yield Finding(file.path, f"{error}{hint}", lacking=True)
            continue
        if gone is not None:
            hint = f"; {remedy}" if remedy else ""
            yield Finding(file.path, f"there is no {gone}{hint}", lacking=True)
        elif damage := _damage(file):
            yield Finding(file.path, f"{damage}; remove it, then {remedy}", lacking=True)
        elif file.path == study.model.path and (refusal := _refusal(study)):
            yield Finding(file.path, refusal, lacking=True)
        else:
            same = ", with the official file's SHA-256" if file.sha256 else ""
            yield Finding(file.path, f"there{same}")


def _damage(file: UserPath) -> str:
    """What is wrong with a file whose hash is known; "" if nothing is, or if it is not known."""
    if file.sha256 is None:
        return ""
    try:
        same = sha256(user_path(file.path, file.key)) == file.sha256
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if same else "damaged: its SHA-256 is not the official file's"


def _refusal(study: Study) -> str:
    """Why no conversation can be made for the user's model; "" if one can."""
    try:
        # Imported here: the package tokenizers may be among those that are lacking.
        from hgrpo.agent.conversation import conversation_for

        conversation_for(user_path(study.model.path, "path"), study.model.system)
    except UserError as error:
        return str(error)
    except ImportError:
        pass
    return ""


def _remedy(file: UserPath, study: Study) -> str:
    """How to get a file that is not there; "" if only its owner knows."""
    if file.made:
        return f"`make fetch-assets STUDY={study.config.name}` downloads it"
    if file.path != study.model.path:
        return ""
    name = Path(file.path).name
    key = f"`path` in configs/models/{study.model.name}.yaml names the folder"
    if not name.startswith(_HUB_OWNER):
        return f"put a Hugging Face model there; {key}"
    fetch = f"`hf download {_HUB_OWNER}/{name} --local-dir {file.path}`"
    return f"{fetch} fetches it from the Hugging Face hub; {key}"


def _disk(study: Study, folder: Path) -> Finding:
    plan, free = Plan(study), shutil.disk_usage(folder).free
    estimates, left = Estimates(plan), plan.to_run()
    need = sum(estimates.bytes(job.stage, job.arm).value for job in left)
    found = f"{size(free)} free; the {len(left)} jobs to run write up to {size(need)}"
    return Finding("disk", found, lacking=free < need)


def one_step(study: Study) -> list[str]:
    """Words KEY=VALUE that make a run of the study as short as a run of all its stages can be.

    The arms are the one without training, the reference, the first arm with a fit between rounds,
    and those whose credit calls a service. With a fit there are two rounds, because a fit follows
    every round but the last. Other keys that the command line changed keep their values.
    """
    untrained = [name for name, arm in study.methods.items() if not arm.train]
    fitted = [name for name, arm in study.methods.items() if arm.credit.declared.fits]
    called = [key for key, arm in study.methods.items() if arm.credit.declared.outside_calls(1, 1)]
    lead = study.config.reference if study.has_reference else next(iter(study.round_trajectories))
    methods = dict.fromkeys([*untrained, lead, *fitted[:1], *called])
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
