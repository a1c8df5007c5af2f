"""Check whether a machine fulfils the requirements of a study."""

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
    """Check all requirements of a study: packages, plug-ins, GPU, engine, keys, data and disk.

    Slurm nodes share this machine's disk, including packages and data, but they have other GPUs.
    Kubernetes pods share nothing with this machine.

    Args:
        study: the study to run.
        environment: environment variables, which may include API keys.
        folder: the project's folder; results are written to the same disk.
        profile: the Snakemake profile of the run.
    """
    here = [Finding("python", platform.python_version()), *plugins(profile.executor)]
    if profile.executor == "slurm":
        answers, text = ask_slurm()
        here.append(Finding("sinfo", text, lacking=not answers))
    keys = _keys(study, environment)
    if profile.in_bucket:
        image = Finding("pods", "their image must provide packages, engine, GPU and data", None)
        return [*here, *checked_packages(["workflow"]), image, *keys]
    needed = [
        *checked_packages(extras(study)),
        _engine(study),
        *_gpus(study, profile.executor),
        *keys,
    ]
    return [*here, *needed, *_data(study), _disk(study, folder)]


def extras(study: Study) -> list[str]:
    """Extras of pyproject.toml that the study requires."""
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
    """Yield a finding on the GPUs visible to PyTorch, if any job of the study requires a GPU."""
    needed = max(stage.gpu for stage in dict(study.config.resources).values())
    name = f"GPU ({needed} for a job)"
    if not needed:
        return
    if executor != "local":
        yield Finding(name, "required on the nodes, not on this machine", None)
        return
    try:
        # This import takes a second, and most studies do not need it.
        import torch
    except ImportError:
        return  # `checked_packages` already reports that torch is missing
    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    names = [f"{gpu.name} with {gpu.total_memory / 2**30:.0f} GiB" for gpu in gpus]
    yield Finding(name, ", ".join(names) or "PyTorch sees no GPU", lacking=len(names) < needed)


def _keys(study: Study, environment: Mapping[str, str]) -> Iterator[Finding]:
    """One finding per required environment variable, listing the methods that require it."""
    methods: dict[str, list[str]] = {}
    for method in study.methods.values():
        for name in missing_variables(method, {}):
            methods.setdefault(name, []).append(method.name)
    for name, names in methods.items():
        lacking = name in missing_variables(study.methods[names[0]], environment)
        text = f"not set; required by {', '.join(names)}" if lacking else "set"
        yield Finding(name, text, lacking)


def _data(study: Study) -> Iterator[Finding]:
    """Findings on the environment's data files, and on the user's model or SFT policy."""
    for file in user_paths(study):
        text = problem(file)
        if not text and file.sha256 and sha256(user_path(file.path, file.key)) != file.sha256:
            text = f"damaged: SHA-256 differs from the official file; remove it, then {file.hint}"
        if not text and file.path == study.model.path:
            text = _refusal(study)
        yield Finding(file.path, text or "exists", lacking=bool(text))


def _refusal(study: Study) -> str:
    """Error message if the user's model has no usable chat template, else ""."""
    # The package `tokenizers` may not be installed.
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
    """Assignments KEY=VALUE for the shortest run that executes all stages of the study.

    The run includes all untrained arms, the reference, the first arm with a credit model fitted
    between rounds, and all arms that call an external service. With a fitted credit model, the run
    has two rounds, because no fit follows the last round. Other overrides are kept.
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
    values = {k: v if isinstance(v, str) else json.dumps(v) for k, v in (others | changed).items()}
    return [f"study={study.config.name}", *(f"{key}={value}" for key, value in values.items())]
