"""What the commands of all pieces share: flags from settings, notes, and the file of rows."""

import argparse
import ctypes
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo
from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.config.read import did_you_mean, validate
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.formulas.rule import Rule
from hgrpo.sandbox.old_flags import flags_of

Settings = TypeVar("Settings", bound=Strict)
# Parameters of mallopt(3): https://man7.org/linux/man-pages/man3/mallopt.3.html.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 2**30
# PyTorch reads it at its first allocation of 2 MB or more:
# https://github.com/pytorch/pytorch/pull/107697.
_LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"
DEVICES = ("cpu", "cuda")
# How a message of `validate` names a rule's setting. A run of opd puts its phase before it.
_SETTING = re.compile(r"\b(?:phases\.\d+\.)?rule\.(?P<setting>\w+)")


def parse(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; flags may be spelled with `-` or with `_`.

    A parser with subcommands may set one of them as its default; it is taken where none is named.

    Raises:
        UserError: a flag is unknown; the message names the nearest known one.
    """
    spelled = [_underscored(word) for word in (sys.argv[1:] if words is None else words)]
    args, unknown = parser.parse_known_args(_complete(parser, spelled))
    if unknown:
        known = [flag for flag in _flags(parser, args) if flag.startswith("--")]
        raise UserError(f"{unknown[0]}: unknown{did_you_mean(unknown[0].split('=')[0], known)}")
    return args


def _complete(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The words, with a parser's default subcommand where the words name none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            default = parser.get_default(action.dest)
            named = words and (not words[0].startswith("-") or words[0] in ("-h", "--help"))
            if default and not named:
                words = [default, *words]
            if words and words[0] in action.choices:
                return [words[0], *_complete(action.choices[words[0]], words[1:])]
    return list(words)


def _underscored(word: str) -> str:
    if not word.startswith("--"):
        return word
    flag, equals, value = word[2:].partition("=")
    return f"--{flag.replace('-', '_')}{equals}{value}"


def _flags(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[str]:
    """Flags of the parser and of the chosen subcommand."""
    found = []
    for action in parser._actions:
        found += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            found += _flags(action.choices[getattr(args, action.dest)], args)
    return found


def truth(text: str) -> bool:
    """The literal `true` or `false`, as a type for argparse.

    Raises:
        argparse.ArgumentTypeError: it is another word.
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise argparse.ArgumentTypeError(f"true or false was expected, not {text!r}")


def add_fields(
    parser: argparse.ArgumentParser,
    model: type[Strict],
    defaults: Mapping[str, Any] | None = None,
    skip: Collection[str] = (),
) -> None:
    """Declare a flag for every field of a settings model.

    Args:
        defaults: defaults of the command line that differ from the model's.
    """
    for name, field in model.model_fields.items():
        if name in skip:
            continue
        default = (defaults or {}).get(name, field.default)
        default = ",".join(map(str, default)) if isinstance(default, tuple) else default
        kind = _kind(field)
        shown = str(default).lower() if default is None or kind is bool else default
        parser.add_argument(
            f"--{name}",
            type=truth if kind is bool else kind,
            default=default,
            help=f"{field.description} (default {shown})".replace("%", "%%"),
        )


def add_rule_flags(
    parser: argparse.ArgumentParser, rules: Mapping[str, type[Rule]], texts: Mapping[str, str]
) -> argparse._ArgumentGroup:
    """Declare flags of rules' own settings, with the types, words and defaults of these settings.

    A flag that is not given is None, so that each rule takes its own default.

    Args:
        texts: by flag, what it says.

    Returns:
        the group that holds the flags.
    """
    group = parser.add_argument_group("settings of rules")
    for flag, text in texts.items():
        field = _rule_field(rules, flag)
        words = get_args(field.annotation) if get_origin(field.annotation) is Literal else None
        shown = f"{field.default:g}" if isinstance(field.default, float) else field.default
        group.add_argument(
            f"--{flag}", type=_kind(field), choices=words, help=f"{text} (default {shown})"
        )
    return group


def _rule_field(rules: Mapping[str, type[Rule]], flag: str) -> FieldInfo:
    """The setting that the flag gives, of the first rule that reads it."""
    return next(
        rule.model_fields[key]
        for rule in rules.values()
        for key, own in flags_of(rule).items()
        if own == flag
    )


def _kind(field: FieldInfo) -> type:
    """The type of one word on the command line; `str` for words and for lists."""
    kinds = get_args(field.annotation) or (field.annotation,)
    return next((kind for kind in kinds if isinstance(kind, type) and kind is not NoneType), str)


def add_run_flags(parser: argparse.ArgumentParser, seeds: int = 3) -> None:
    """Declare `--seed`, `--num_seeds`, which is `seeds` by default, `--device` and `--verbose`."""
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument(
        "--num_seeds", type=int, default=seeds, help=f"how many seeds (default {seeds})"
    )
    add_device_and_verbose(parser)


def add_device_and_verbose(parser: argparse.ArgumentParser) -> None:
    """Declare `--device`, and the flag that silences a command."""
    parser.add_argument(
        "--device", choices=DEVICES, default="cpu", help="where tensors are (default cpu)"
    )
    parser.add_argument(
        "--verbose", type=truth, default=True, help="progress bar and closing line (default true)"
    )


def chosen_seeds(args: argparse.Namespace) -> tuple[int, ...]:
    """The seeds that the flags of `add_run_flags` ask for.

    Raises:
        UserError: there is none.
    """
    if args.num_seeds < 1:
        raise UserError(f"--num_seeds: at least 1 was expected, not {args.num_seeds}")
    return tuple(range(args.seed, args.seed + args.num_seeds))


def chosen_fields(args: argparse.Namespace, model: type[Strict]) -> dict[str, Any]:
    """The fields of a settings model that have a flag, with their values."""
    return {name: vars(args)[name] for name in model.model_fields if name in vars(args)}


def chosen_rule(args: argparse.Namespace, rule: type[Rule] | None) -> dict[str, Any]:
    """The rule's own settings that were given by flags; none of an unknown rule."""
    flags = flags_of(rule) if rule else {}
    return {key: vars(args)[flag] for key, flag in flags.items() if vars(args)[flag] is not None}


def flag_names(rule: type[Rule] | None) -> dict[str, str]:
    """The flag of each of the rule's settings, as it is typed."""
    return {key: f"--{flag}" for key, flag in (flags_of(rule) if rule else {}).items()}


def checked(
    model: type[Settings], given: Mapping[str, Any], piece: str, typed: Mapping[str, str]
) -> Settings:
    """The settings of a run; messages name a rule's setting as it was typed.

    Args:
        typed: by the key of a rule's setting, how the command line gives it.

    Raises:
        UserError: a value is refused.
    """

    def name(key: re.Match) -> str:
        return typed.get(key["setting"], key[0])

    try:
        return validate(model, given, piece)
    except UserError as error:
        raise UserError(_SETTING.sub(name, str(error))) from None


def unread_rule_flags(
    args: argparse.Namespace, method: str, rules: Mapping[str, type[Rule]], model: type[Strict]
) -> list[str]:
    """A line for each flag that sets another rule, and was given though this rule ignores it.

    Args:
        model: settings of a run; a flag that is one of its fields is read whatever the rule.
    """
    read = {*flags_of(rules[method]).values(), *model.model_fields}
    others = {flag for rule in rules.values() for flag in flags_of(rule).values()} - read
    given = sorted(flag for flag in others if vars(args)[flag] is not None)
    return [f"--{flag}: {method} does not read it" for flag in given]


def unread_fields(run: Strict, readers: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """Return a line for each field that was changed from its default although nothing reads it.

    Args:
        readers: for each possible reader, the fields that it may read, and whether it does.
    """
    fields = type(run).model_fields
    return [
        f"--{name}: {reader} does not read it"
        for reader, names in readers.items()
        for name, read in names.items()
        if not read and getattr(run, name) != fields[name].default
    ]


def say_notes(lines: Iterable[str]) -> None:
    """Print each line once to stderr, as a note."""
    for line in dict.fromkeys(lines):
        tqdm.write(f"note: {line}", file=sys.stderr)


def check_output(flag: str, output: Path) -> None:
    """Make the output file's folder; refuse an output that cannot be written before the run.

    A note says that a file which is there already will be replaced.

    Raises:
        UserError: the output is a folder, or its folder cannot be made or written into.
    """
    if output.is_dir():
        raise UserError(f"{flag}: {output} is a folder; a file was expected")
    check_folder(flag, output.parent)
    if output.exists():
        say_notes([f"{flag}: {output} is there already; the run replaces it when it is done"])


def check_folder(flag: str, folder: Path) -> None:
    """Make the folder of outputs; refuse one that cannot be written into before the run.

    Raises:
        UserError: the folder is a file, or it cannot be made or written into.
    """
    if os.path.exists(folder) and not folder.is_dir():
        raise UserError(f"{flag}: {folder} is a file; a folder was expected")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{flag}: {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"{flag}: {folder}: no files can be written here")


def prepare_torch(device: str = "cpu") -> None:
    """Choose where PyTorch makes tensors, and give it one thread.

    OMP_NUM_THREADS can give it more, but nets are small and gain nothing from them. Import modules
    that make tensors at import only after this call.

    Raises:
        UserError: PyTorch can use no GPU here.
    """
    import torch

    _prepare_memory()
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device cuda: PyTorch {torch.__version__} can use no GPU here")
    # Any default device makes every call of PyTorch slower; without one, tensors are on the CPU.
    torch.set_default_device(None if device == "cpu" else device)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def _prepare_memory() -> None:
    """Ask for pages of 2 MB, and let the C library keep freed blocks of up to a GiB.

    By default glibc gives large blocks back to the system, and the next tensor of that size has all
    its pages cleared and mapped again. That takes 9 % of the time of ten seeds in one program.
    Large pages save another 5 to 15 %, because a processor finds their addresses faster. Where
    there is no glibc or no such page, nothing happens.
    """
    os.environ.setdefault(_LARGE_PAGES, "1")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _LARGEST)


def write_rows(rows: Sequence[Mapping[str, Any]], target: Path, first: Sequence[str]) -> None:
    """Write rows as CSV; columns in `first` lead, others follow in the order of appearance."""
    import pandas as pd

    from hgrpo.report.csv_file import write_csv

    names = dict.fromkeys(first) | dict.fromkeys(name for row in rows for name in row)
    with atomic_file(target) as path:
        write_csv(pd.DataFrame(rows, columns=list(names)), path)


def say_written(
    target: Path,
    rows: Sequence[Mapping[str, Any]],
    last: Sequence[Mapping[str, Any]],
    headline: str,
) -> None:
    """Print how many rows the file has, and the mean of column `headline` over the rows `last`."""
    mean = sum(row[headline] for row in last) / len(last)
    print(f"{target}: {len(rows)} rows; last {headline} {mean:.4f}")
