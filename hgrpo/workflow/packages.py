"""Which of the packages that pyproject.toml names are installed."""

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement

# Packages whose versions are always shown; others only if they are lacking.
PACKAGES = ("torch", "transformers", "peft", "tokenizers", "pandas", "pyarrow", "snakemake")
_PROJECT = "hgrpo"  # an extra may take in another one: "hgrpo[fetch]"


@dataclass(frozen=True)
class Finding:
    """One thing that a study needs.

    Attributes:
        name: such as the name of a package.
        text: the state of the machine, such as a version; or the problem.
        lacking: whether the study cannot run without it; None if only a node can show it.
    """

    name: str
    text: str
    lacking: bool | None = False


def plugins(executor: str) -> list[Finding]:
    """Snakemake's plug-ins that an executor needs, from the extra that is named as its executor."""
    plugin = Requirement(f"snakemake-executor-plugin-{executor}")
    return [] if executor == "local" else packages(executor) or [_package(plugin)]


def checked_packages(extras: list[str]) -> list[Finding]:
    """Those of `PACKAGES`, and any that is missing or older than pyproject.toml requires."""
    checked = [each for extra in ["", *extras] for each in packages(extra)]
    return [each for each in checked if each.lacking or each.name in PACKAGES]


def packages(extra: str) -> list[Finding]:
    """Each package of an extra of pyproject.toml, or of its `dependencies` if the extra is ""."""
    return [_package(requirement, extra) for requirement in _requirements(extra)]


def _package(requirement: Requirement, extra: str = "") -> Finding:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if version and requirement.specifier.contains(version, prereleases=True):
        return Finding(requirement.name, version)
    hint = f" (EXTRAS={extra})" if extra not in ("", "train", "workflow") else ""
    needed = f"{requirement.specifier or 'it'} is needed{hint}"
    return Finding(requirement.name, f"{version or 'not installed'}; {needed}", lacking=True)


def _requirements(extra: str) -> Iterator[Requirement]:
    """The packages of an extra of this project, or of its dependencies if the extra is ""."""
    for each in map(Requirement, importlib.metadata.requires(_PROJECT) or []):
        if each.marker.evaluate({"extra": extra}) if each.marker else not extra:
            if each.name == _PROJECT:
                for other in each.extras:
                    yield from _requirements(other)
            else:
                yield each
