"""The hash of the code that a job runs.

Snakemake sees only a stage's shell command, so it cannot notice an edit in a Python module. This
hash covers:
- the stage's module
- the environment, engine, credit assigners and update rule that the job uses
- every hgrpo module that these import, also inside functions
- the data files in the packages of all these modules

The hash leaves out what cannot change a result:
- comments, docstrings, formatting and imports for type checking
- descriptions of settings, and texts of errors and of progress
- functions and modules that only plan a stage or record where it ran
- the command lines in `hgrpo.cli`
- capabilities of a plug-in that the stage does not use
- the defaults of settings, in modules whose names end in `settings`

Defaults can be left out because `--config` gives the job every value. If a value changes, the job
runs again anyway.
"""

import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from hgrpo.credit import kinds as credit_kinds
from hgrpo.errors import UserError
from hgrpo.learning.rules import kinds as rule_kinds
from hgrpo.stages.order import load
from hgrpo.workflow.code_meaning import PLUGINS, Meaning, meaning
from hgrpo.workflow.kept_meanings import KeptMeanings

PACKAGE = Path(__file__).resolve().parent.parent
# Names in a stage's module that only planning uses. Their effect reaches jobs as params and inputs.
_PLANS = frozenset(
    {"from_study", "from_whole_study", "inputs", "outputs", "Paths", "reusable", "needed"}
    | {"RESOURCES", "ENV_USES", "ENGINE_USES", "LOADS_CREDIT", "LOADS_RULE"}
)
_PLANNING_MODULES = ("stages.comparison", "stages.files", "stages.order", "stages.paths")
_RECORDING_MODULES = ("provenance", "envs.user_files")


def code_version(
    stage: str,
    env: str | None = None,
    engine: str | None = None,
    credit: Iterable[str] = (),
    rule: str | None = None,
) -> str:
    """Hash (16 hex digits) of the code that a job of a stage runs.

    Args:
        stage: one of `hgrpo.stages.order.STAGES`.
        env: name of the environment; None if the stage uses none.
        engine: kind of the rollout engine; None if the stage uses none.
        credit: kinds of the credit assigners that the job loads.
        rule: name of the update rule; None if the job trains nothing.
    """
    return _code_version(stage, env, engine, tuple(sorted(set(credit))), rule)


def code_of(stage: str, settings: Mapping) -> str:
    """`code_version` of a job whose --config holds `settings`.

    The section `env` names the environment, and `engine` names the engine. If the stage loads
    credit assigners, every section `credit` names one; if it trains, `objective` names the rule.
    """
    return code_version(stage, *_choices(stage, settings))


def modules_of(stage: str, settings: Mapping) -> dict[str, str]:
    """What `code_of` covers: each module and data file -> the hash (16 hex digits) of its part.

    If two machines have different code for a job, this says where it differs.
    """
    found = contents(*plug_ins(stage, *_choices(stage, settings)))
    return {name: found[name][:16] for name in sorted(found)}


class Choices(NamedTuple):
    """What a job uses of the code that settings choose by name; None or empty if nothing."""

    env: str | None
    engine: str | None
    credit: set[str]
    rule: str | None


def _choices(stage: str, settings: Mapping) -> Choices:
    """What the settings of a job choose."""
    env, engine = settings.get("env") or {}, settings.get("engine") or {}
    credit = _credit_kinds(settings) if "LOADS_CREDIT" in vars(load(stage)) else set()
    objective = (settings.get("method") or {}).get("objective") or {}
    rule = objective.get("rule") if "LOADS_RULE" in vars(load(stage)) else None
    return Choices(env.get("name"), engine.get("kind"), credit, rule)


def _credit_kinds(settings: object) -> set[str]:
    if isinstance(settings, list):
        return set().union(*map(_credit_kinds, settings))
    if not isinstance(settings, Mapping):
        return set()
    found = set().union(*map(_credit_kinds, settings.values()))
    credit = settings.get("credit")
    return found | {credit["kind"]} if isinstance(credit, Mapping) and "kind" in credit else found


@functools.cache
def _code_version(
    stage: str,
    env: str | None,
    engine: str | None,
    credit: tuple[str, ...],
    rule: str | None,
) -> str:
    digest = hashlib.sha256()
    roots, uses = plug_ins(stage, env, engine, credit, rule)
    for name, content in sorted(contents(roots, uses).items()):
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()[:16]


@functools.cache
def package_digest(package: Path = PACKAGE) -> str:
    """Hash (16 hex digits) of every file of the package as it is, with comments and all.

    It takes a twentieth of the time of `code_version`. If it has not changed, no hash of code has.
    """
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__":
            digest.update(f"{path.relative_to(package)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def plug_ins(
    stage: str,
    env: str | None,
    engine: str | None,
    credit: Iterable[str],
    rule: str | None = None,
) -> tuple[list[str], frozenset[str]]:
    """The modules that a job starts from, and the capabilities of plug-ins that it uses."""
    module = load(stage)
    env_uses, engine_uses = vars(module).get("ENV_USES", ()), vars(module).get("ENGINE_USES", ())
    for kind in credit:
        env_uses += tuple(credit_kinds.settings_of(kind).uses)
    roots = [module.__name__, *map(credit_kinds.module_name, credit)]
    if env is not None and env_uses:
        roots.append(f"hgrpo.envs.{env}")
    if engine is not None and engine_uses:
        roots.append(f"hgrpo.rollout.{engine}")
    if rule is not None:
        roots.append(rule_kinds.module_name(rule))
    return roots, frozenset({*env_uses, *engine_uses, "Settings"})


def contents(
    roots: Iterable[str],
    uses: frozenset[str] = frozenset(),
    package: Path = PACKAGE,
    skip: Collection[str] = (),
) -> dict[str, str]:
    """Map each module's name and each data file's path to SHA-256 of what counts in it.

    Args:
        roots: dotted names of the modules that a job starts from.
        uses: capabilities of plug-ins that the stage uses; the hash leaves out all others.
        package: folder of the package. Paths of data files are relative to its parent.
        skip: dotted names of modules to leave out, with what only they import.
    """
    modules = imported_modules(roots, uses, package, skip=skip)
    found = {
        name: _meaning(name, _read_uses(name, uses, package), package).digest for name in modules
    }
    for name in modules:
        source = _source(name, package)
        if source.name == "__init__.py":
            for path in _data_files(source.parent):
                found[str(path.relative_to(package.parent))] = hashlib.sha256(
                    path.read_bytes()
                ).hexdigest()
    return found


def imported_modules(
    roots: Iterable[str],
    uses: frozenset[str] = frozenset(),
    package: Path = PACKAGE,
    lazy: bool = True,
    skip: Collection[str] = (),
) -> frozenset[str]:
    """Modules of the package that a job runs: the roots, their parents and all they import.

    Args:
        roots, uses, package, skip: as for `contents`.
        lazy: whether to follow imports inside functions too.

    Raises:
        FileNotFoundError: a module of `roots` does not exist.
    """
    skipped = {f"{package.name}.{name}" for name in (*_PLANNING_MODULES, *_RECORDING_MODULES)}
    skipped.update(skip)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name in skipped:
            continue
        found.add(name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        waiting += _imports(name, _read_uses(name, uses, package), package, lazy)
    return frozenset(found)


@functools.cache
def _source(module: str, package: Path) -> Path:
    folder = package.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@functools.cache
def _may_hold_plug_in(module: str, package: Path) -> bool:
    source = _source(module, package).read_bytes()
    return any(base.encode() in source for base in PLUGINS)


def _read_uses(module: str, uses: frozenset[str], package: Path) -> frozenset[str]:
    """Return `uses` if the module may hold a plug-in, otherwise an empty set.

    With an empty set, all stages share one cache entry for the module, so it is parsed once.
    """
    return uses if _may_hold_plug_in(module, package) else frozenset()


@functools.cache
def _meaning(module: str, uses: frozenset[str], package: Path) -> Meaning:
    source = _source(module, package)
    text = source.read_bytes()
    plans = _PLANS if module.startswith(f"{package.name}.stages.") else frozenset()
    settings = module.endswith("settings")
    name = " ".join([module, *sorted(uses), *sorted(plans), *(["settings"] if settings else [])])
    read = functools.partial(meaning, text, str(source), uses, plans, settings)
    try:
        return _kept(package).get(name, text, read)
    except SyntaxError as error:
        raise UserError(f"{source}, line {error.lineno}: {error.msg}") from None


@functools.cache
def _kept(package: Path) -> KeptMeanings:
    return KeptMeanings(package)


@functools.cache
def _imports(module: str, uses: frozenset[str], package: Path, lazy: bool) -> list[str]:
    source = _source(module, package)
    names = []
    found = _meaning(module, uses, package)
    for level, base, taken in found.top + (found.inside if lazy else []):
        if level:
            parents = module.split(".")
            kept = len(parents) - level + (source.name == "__init__.py")
            base = ".".join(parents[:kept] + ([base] if base else []))
        names += [base, *(f"{base}.{name}" for name in taken)]
    inside = [name for name in names if name.split(".")[0] == package.name]
    return [name for name in inside if _source(name, package).is_file()]


@functools.cache
def _data_files(folder: Path) -> list[Path]:
    """Files of a package except Python files, subpackages, hidden files and editors' backups."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found += _data_files(path)
        elif path.is_file() and path.suffix not in {".py", ".pyc"}:
            found.append(path)
    return found
