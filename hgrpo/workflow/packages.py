"""Which of the packages that pyproject.toml names are installed."""

import importlib.metadata
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement

# Packages whose versions are always shown; others only if they are lacking.
PACKAGES = ("torch", "transformers", "peft", "tokenizers", "pandas", "pyarrow", "snakemake")
_OWN = "hgrpo"  # an extra may take in another one: "hgrpo[fetch]"


@dataclass(frozen=True)
class Finding:
    """One thing that a study needs.

    Attributes:
        name: what it is.
        found: what the machine has, such as a version; or what is wrong.
        lacking: whether the study cannot run without it; None if only a node can show it.
    """

    name: str
    found: str
    lacking: bool | None = False


def plugins(executor: str) -> Iterator[Finding]:
    """Snakemake's plug-ins that an executor needs, from the extra that is named as its executor."""
    if executor != "local":
        plugin = Requirement(f"snakemake-executor-plugin-{executor}")
        yield from packages(executor) or [_package(plugin)]


def checked_packages(extras: list[str]) -> Iterator[Finding]:
    """Those of `PACKAGES`, and any that is missing or older than pyproject.toml asks for."""
    for extra in ["", *extras]:
        yield from (each for each in packages(extra) if each.lacking or each.name in PACKAGES)


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
