"""The arms that a study's axes make: their names, their checks, and which of them are shared.

An arm is given by what it changes in a method, as a variant is, so that all later stages see an
ordinary method.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.study.axis import Axis, arm_name, as_text, target
from hgrpo.study.overrides import changes


def arms_of_axes(
    axes: Mapping[str, Axis], variants: Iterable[str], studies: Path, where: str
) -> dict[str, tuple[str, dict]]:
    """Arm -> its axis, and its variant in the form that a study's file gives one.

    Args:
        axes: the study's axes by name.
        variants: names of the study's variants.
        studies: the folder of study files.
        where: the study's file, for messages.

    Raises:
        UserError: two arms have one name, or an axis's target is the name of a study.
    """
    arms: dict[str, tuple[str, dict]] = {}
    owners = dict.fromkeys(variants, "variants")
    for axis, settings in axes.items():
        study = studies / f"{target(axis)}.yaml"
        if study.is_file():
            raise UserError(
                f"{where}: axes.{axis}: its target {target(axis)!r} is the study {study}; give the "
                "axis another name"
            )
        for value in settings.values:
            name, text = arm_name(axis, value), as_text(value)
            if name in owners:
                raise UserError(
                    f"{where}: axes.{axis}.values: the arm of {text} would be {name!r}, as one of "
                    f"{owners[name]}; give the axis another name"
                )
            owners[name] = f"axes.{axis}"
            label = f"{settings.label or axis} {text}"
            arms[name] = axis, settings.changes(value) | {"of": settings.of, "label": label}
    return arms


def check_axes(axes: Mapping[str, Axis], arms: Mapping[str, Mapping], where: str) -> None:
    """Refuse an axis whose arms are not trained, differ in another key, or do not differ.

    Args:
        axes: the study's axes by name.
        arms: arm -> its settings, as `Study.resolved` has them.
        where: the study's file, for messages.

    Raises:
        UserError: the message names two arms and the keys in which they differ.
    """
    for axis, settings in axes.items():
        names = [arm_name(axis, value) for value in settings.values]
        if not any(arms[name]["train"] for name in names):
            raise UserError(
                f"{where}: axes.{axis}.of: {settings.of}: no arm is trained, so all would be the "
                "SFT policy as it is; a trained method was expected"
            )
        for index, name in enumerate(names):
            equal = next((o for o in names[:index] if not differing(arms[o], arms[name])), None)
            if equal:
                raise UserError(
                    f"{where}: axes.{axis}.values: {equal} and {name} have equal settings; give "
                    "each value once"
                )
        for first, second, key in _compared(axis, settings):
            differ = differing(arms[first], arms[second])
            if differ != [key]:
                raise UserError(
                    f"{where}: axes.{axis}: {first} and {second} differ in "
                    f"{', '.join(differ)}, but the arms of an axis differ in one "
                    f"key, here {key}"
                )


def _compared(axis: str, settings: Axis) -> list[tuple[str, str, str]]:
    """Two arms each, and the one key in which they should differ."""
    first = next(value for value in settings.values if not settings.is_without(value))
    # Without its section, an arm lacks the section's other keys too.
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
    """The name of every arm of an axis -> the arm that is run for it.

    Equal settings are run once: as the arm that is listed among the study's methods, or else as
    that of the first axis.

    Args:
        axes: the study's axes by name.
        listed: the methods that the study's file lists.
        arms: arm -> its settings, as `Study.resolved` has them; those listed and those of axes.
    """
    known, run_as = list(listed), {}
    for axis, settings in axes.items():
        for name in (arm_name(axis, value) for value in settings.values):
            equal = (arm for arm in known if not differing(arms[arm], arms[name]))
            run_as[name] = next(equal, name)
            known.append(run_as[name])
    return run_as


def members(axes: Mapping[str, Axis], run_as: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Axis -> value, as text -> the arm that is run for it; `run_as` is from `shared_points`."""
    return {
        axis: {as_text(value): run_as[arm_name(axis, value)] for value in settings.values}
        for axis, settings in axes.items()
    }


def differing(one: Mapping, other: Mapping) -> list[str]:
    """The keys, with dots, in which two arms' settings differ, apart from name and label."""
    return [key for key in changes(one, other) if key not in ("name", "label")]
