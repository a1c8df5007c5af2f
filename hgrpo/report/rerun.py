"""Commands that reproduce a study, add seeds to it, or build further targets."""

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence

from hgrpo.config.read import for_snakemake, read_value
from hgrpo.errors import UserError

DEFAULT_STUDY = "bakeoff"  # the default of the Makefile
# Keys with a separate Makefile variable; all others go into `SET`.
_VARIABLES = ("seeds", "rounds", "methods", "mine")
# Seeds of the shipped studies, for comparison with their published results.
SEEDS = (11, 23, 31, 47, 59)


def command(study: Mapping, overridden: Mapping[str, object], seeds: Sequence[int] = ()) -> str:
    """Command that reproduces a study's results.

    Args:
        study: the resolved study, with the keys name, seeds, rounds and methods.
        overridden: values of the settings overridden on the command line, by dotted key.
        seeds: seeds that replace those of the study.
    """
    parts = ["make bakeoff"]
    if study["name"] != DEFAULT_STUDY:
        parts.append(f"STUDY={study['name']}")
    chosen = _chosen(study, overridden | ({"seeds": seeds} if seeds else {}))
    parts += [f"{key.upper()}={_list(values)}" for key, values in chosen.items()]
    if assigned := _assigned(overridden):
        parts.append(f"SET={shlex.quote(assigned.replace('$', '$$'))}")  # $ is special in make
    return " ".join(parts)


def target_command(target: str, study: Mapping, overridden: Mapping[str, object]) -> str:
    """Command that builds a Snakemake target for exactly the study's runs.

    It repeats the overridden keys, because Snakemake would otherwise train other runs.

    Args:
        target: name of a rule.
        study, overridden: as in `command`.
    """
    parts = [f"snakemake {target} --config study={study['name']}"]
    parts += [f"{key}={_joined(values, ',')}" for key, values in _chosen(study, overridden).items()]
    if assigned := _assigned(overridden):
        parts.append(f"set={shlex.quote(for_snakemake(assigned))}")
    return " ".join(parts)


def _chosen(study: Mapping, overridden: Mapping[str, object]) -> dict[str, object]:
    """Overridden variables and their values; `methods` does not include the user's own arms."""
    mine = overridden.get("mine", ())
    chosen = {key: overridden[key] for key in _VARIABLES if key in overridden}
    if "methods" in chosen:
        chosen["methods"] = [name for name in chosen["methods"] if name not in mine]
    return chosen


def _assigned(overridden: Mapping[str, object]) -> str:
    others = overridden.keys() - set(_VARIABLES)
    return " ".join(f"{key}={_text(overridden[key])}" for key in sorted(others))


def _text(value: object) -> str:
    """Format a value for `SET`, with quotes around text that YAML would parse as another type."""
    with contextlib.suppress(UserError):
        if isinstance(value, str) and "=" not in value and read_value(value, "") == value:
            return value
    return json.dumps(value, ensure_ascii=False)


def with_more_seeds(study: Mapping, overridden: Mapping[str, object], fewest: int) -> str:
    """Command that adds seeds of `SEEDS` up to a total of `fewest`; "" if the study has enough."""
    seeds = study["seeds"]
    if len(seeds) >= fewest:
        return ""
    return command(study, overridden, [*dict.fromkeys((*seeds, *SEEDS))][:fewest])


def _list(values: Sequence[object]) -> str:
    text = _joined(values, " ")
    return f'"{text}"' if " " in text else text


def _joined(values: object, between: str) -> str:
    return between.join(map(str, values)) if isinstance(values, Iterable) else str(values)
