"""Check that the packages required by pyproject.toml are installed."""

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement

# Packages whose versions are always shown; other packages are shown only if they are missing.
PACKAGES = ("torch", "transformers", "peft", "tokenizers", "pandas", "pyarrow", "snakemake")
_PROJECT = "hgrpo"  # an extra may include another extra of the project: "hgrpo[fetch]"


@dataclass(frozen=True)
class Finding:
    """The check of one requirement of a study.

    Attributes:
        name: the requirement, such as a package.
        text: the installed version, or a description of the problem.
        lacking: whether the requirement is missing; None if this cannot be checked here.
    """

    name: str
    text: str
    lacking: bool | None = False


def plugins(executor: str) -> list[Finding]:
    """Findings on the Snakemake plug-ins that an executor requires."""
    plugin = Requirement(f"snakemake-executor-plugin-{executor}")
    return [] if executor == "local" else packages(executor) or [_package(plugin)]


def checked_packages(extras: list[str]) -> list[Finding]:
    """Findings on `PACKAGES` and on all other packages that are missing or too old."""
    checked = [each for extra in ["", *extras] for each in packages(extra)]
    return [each for each in checked if each.lacking or each.name in PACKAGES]


def packages(extra: str) -> list[Finding]:
    """Findings on the packages of an extra; "" means pyproject.toml's `dependencies`."""
    return [_package(requirement, extra) for requirement in _requirements(extra)]


def _package(requirement: Requirement, extra: str = "") -> Finding:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if version and requirement.specifier.contains(version, prereleases=True):
        return Finding(requirement.name, version)
    hint = f" (EXTRAS={extra})" if extra not in ("", "train", "workflow") else ""
    text = f"{version or 'not installed'}; required: {requirement.specifier or 'any version'}{hint}"
    return Finding(requirement.name, text, lacking=True)


def _requirements(extra: str) -> Iterator[Requirement]:
    for each in map(Requirement, importlib.metadata.requires(_PROJECT) or []):
        if each.marker.evaluate({"extra": extra}) if each.marker else not extra:
            if each.name == _PROJECT:
                for other in each.extras:
                    yield from _requirements(other)
            else:
                yield each
