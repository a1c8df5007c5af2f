"""Create and check the arms of a study's axes, and detect identical arms.

An arm of an axis is defined by changes to a method, as a variant is. Later stages treat such an arm
as an ordinary method.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.study.axis import Axis, arm_name, as_text, target
from hgrpo.study.overrides import changes


def arms_of_axes(
    axes: Mapping[str, Axis], variants: Iterable[str], studies: Path, where: str
) -> dict[str, tuple[str, dict]]:
    """Map each arm to its axis and its definition, in the format of `variants`.

    Args:
        axes: the study's axes by name.
        variants: names of the study's variants.
        studies: folder with the files of all studies.
        where: path of the study's file, for messages.

    Raises:
        UserError: two arms have the same name, or the target `<axis>_sweep` is the name of a study.
    """
    arms: dict[str, tuple[str, dict]] = {}
    owners = dict.fromkeys(variants, "variants")
    for axis, settings in axes.items():
        study = studies / f"{target(axis)}.yaml"
        if study.is_file():
            raise UserError(
                f"{where}: axes.{axis}: its target {target(axis)!r} is also the name of the "
                f"study {study}; rename the axis"
            )
        for value in settings.values:
            name, text = arm_name(axis, value), as_text(value)
            if name in owners:
                raise UserError(
                    f"{where}: axes.{axis}.values: {text}: the arm {name!r} already exists in "
                    f"{owners[name]}; rename the axis"
                )
            owners[name] = f"axes.{axis}"
            label = f"{settings.label or axis} {text}"
            arms[name] = axis, settings.changes(value) | {"of": settings.of, "label": label}
    return arms


def check_axes(axes: Mapping[str, Axis], arms: Mapping[str, Mapping], where: str) -> None:
    """Raise UserError if arms of an axis are untrained, identical, or differ in more than its key.

    Args:
        axes: the study's axes by name.
        arms: maps each arm to its resolved settings, as in `Study.resolved`.
        where: path of the study's file, for messages.
    """
    for axis, settings in axes.items():
        names = [arm_name(axis, value) for value in settings.values]
        if not any(arms[name]["train"] for name in names):
            raise UserError(
                f"{where}: axes.{axis}.of: {settings.of} is not a trained method, so all arms "
                "would be the SFT policy; choose a trained method"
            )
        for index, name in enumerate(names):
            equal = next((o for o in names[:index] if not differing(arms[o], arms[name])), None)
            if equal:
                raise UserError(
                    f"{where}: axes.{axis}.values: {equal} and {name} have identical settings; "
                    "list each value once"
                )
        for first, second, key in _compared(axis, settings):
            differ = differing(arms[first], arms[second])
            if differ != [key]:
                raise UserError(
                    f"{where}: axes.{axis}: {first} and {second} differ in {', '.join(differ)}, "
                    f"but the arms of this axis may differ only in {key}"
                )


def _compared(axis: str, settings: Axis) -> list[tuple[str, str, str]]:
    """Pairs of arms to check, each with the only key in which the two arms may differ."""
    first = next(value for value in settings.values if not settings.is_without(value))
    # An arm may set the section of the key to null. Then all keys of this section may differ.
    return [
        (
            arm_name(axis, first),
            arm_name(axis, value),
            settings.section if settings.is_without(value) else settings.key,
        )
        for value in settings.values
        if value is not first
    ]


def shared_points(
    axes: Mapping[str, Axis], listed: Iterable[str], arms: Mapping[str, Mapping]
) -> dict[str, str]:
    """Map every arm of an axis to the arm that is run for it, which can be the arm itself.

    Of several identical arms, only one is run: a method in the study's file if there is one, and
    otherwise the arm of the first axis.

    Args:
        axes: the study's axes by name.
        listed: the methods in the study's file.
        arms: resolved settings of these methods and of the axes' arms, by name.
    """
    known, run_as = list(listed), {}
    for axis, settings in axes.items():
        for name in (arm_name(axis, value) for value in settings.values):
            equal = (arm for arm in known if not differing(arms[arm], arms[name]))
            run_as[name] = next(equal, name)
            known.append(run_as[name])
    return run_as


def members(axes: Mapping[str, Axis], run_as: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Map each axis and value (as text) to its arm in the run; see `shared_points` for `run_as`."""
    return {
        axis: {as_text(value): run_as[arm_name(axis, value)] for value in settings.values}
        for axis, settings in axes.items()
    }


def differing(one: Mapping, other: Mapping) -> list[str]:
    """The dotted keys, except name and label, in which the settings of two arms differ."""
    return [key for key in changes(one, other) if key not in ("name", "label")]
