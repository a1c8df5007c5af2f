"""The command `opd`: flags, runs and files."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.config.read import validate
from hgrpo.config.strict import Strict
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.opd.experiments.table import EXPERIMENTS, Experiment, Variant
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.settings import RULES, OpdSettings

HELP = f"""\
On-policy distillation: train one loss against an analytic teacher, or run an experiment.

Flags, defaults, files and columns are those of the original; booleans are `true` or `false`, lists
are words with commas. Without the name of an experiment, `train` runs.

Losses: {", ".join(RULES)}

Examples:
  python -m hgrpo.cli.sandbox opd --task reversal --method OPDReverseKL --num_steps 300
  python -m hgrpo.cli.sandbox opd compare --task reversal --num_steps 300
  python -m hgrpo.cli.sandbox opd variance_microscope --horizons 4,8,16,32 --num_batches 40
  python -m hgrpo.cli.sandbox opd topk_stability --top_ks 1,2,4 --controls true
  python -m hgrpo.cli.sandbox opd topk_cold_start --warmup_steps 100
  python -m hgrpo.cli.sandbox opd topk_warmup_sweep --top_ks 4,8
  python -m hgrpo.cli.sandbox opd soft_teacher_topk --supports student,teacher
"""
_MICROSCOPE = "variance_microscope"
_RULE_FLAGS = {
    "top_k": "OPDTopK*: tokens of a top-k set",
    "top_k_support": "OPDTopK*: whose top-k set, or what both have in common",
    "clip_epsilon": "OPDPG: the ratio is clipped to 1 plus and minus this",
}
# Columns that come first, where there are any.
_FIRST = ("step", "phase", "is_switch", "loss", "seed", "method", "task", "variant")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their flags."""
    chosen = parser.add_subparsers(dest="experiment", required=True, metavar="EXPERIMENT")
    parser.set_defaults(experiment="train")
    train = chosen.add_parser("train", help="train one loss", allow_abbrev=False)
    _add_run(train, OpdSettings, {}, ("phases",))
    train.add_argument(
        "--method", default="OPDReverseKL", help=f"one of {', '.join(RULES)} (default OPDReverseKL)"
    )
    cli.add_rule_flags(train, RULES, _RULE_FLAGS)
    train.add_argument("--output", type=Path, default=Path("opd_results.csv"), help="file of rows")
    for name, experiment in EXPERIMENTS.items():
        parts = chosen.add_parser(name, help=experiment.help, allow_abbrev=False)
        _add_run(parts, OpdSettings, experiment.defaults, ("phases", *experiment.fixed))
        cli.add_fields(parts, experiment.own)
        _add_folder(parts)
    microscope = chosen.add_parser(
        _MICROSCOPE, help="how estimators of the gradient vary", allow_abbrev=False
    )
    _add_run(microscope, MicroscopeSettings, {}, ())
    _add_folder(microscope)


def _add_run(
    parser: argparse.ArgumentParser,
    model: type[Strict],
    defaults: Mapping[str, Any],
    skip: Sequence[str],
) -> None:
    cli.add_fields(parser, model, {"allow_degenerate": True, **defaults}, skip=("seeds", *skip))
    cli.add_run_flags(parser)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output_dir", type=Path, default=Path("opd_results"), help="folder (default opd_results)"
    )


def run(args: argparse.Namespace) -> None:
    """Check every run, train or measure, and write all files at the end."""
    if args.experiment == "train":
        _train(args)
    elif args.experiment == _MICROSCOPE:
        _measure(args)
    else:
        _experiment(args, EXPERIMENTS[args.experiment])


def _train(args: argparse.Namespace) -> None:
    one = train_settings(args)
    cli.check_output("--output", args.output)
    unread = [*cli.unread_rule_flags(args, args.method, RULES, OpdSettings), *_unread(one)]
    cli.say_notes([*one.notes, *unread])
    (rows,) = _train_all(args, [one])
    _write(rows, args.output)
    _close(args, rows, args.output)


def _experiment(args: argparse.Namespace, experiment: Experiment) -> None:
    runs = variant_settings(args, experiment)
    folder = args.output_dir
    cli.check_folder("--output_dir", folder)
    cli.say_notes(note for _, run in runs for note in (*run.notes, *_unread(run)))
    logs = _train_all(args, [run for _, run in runs])
    rows = []
    for (variant, run), log in zip(runs, logs, strict=True):
        own = [_labelled(row, variant) for row in log]
        _write(own, folder / f"{_named(args, experiment.single, run, variant.name)}.csv")
        rows += own
    combined = folder / f"{_named(args, experiment.combined, runs[0][1])}.csv"
    _write(rows, combined)
    _draw(experiment, rows, runs[0][1], combined.with_suffix(".png"))
    _close(args, rows, combined)


def _measure(args: argparse.Namespace) -> None:
    settings = validate(MicroscopeSettings, _given(args, MicroscopeSettings), _MICROSCOPE)
    cli.check_folder("--output_dir", args.output_dir)
    target = args.output_dir / f"{_MICROSCOPE}.csv"
    cli.prepare_torch(args.device)
    from hgrpo.sandbox.opd.microscope.measure import measure

    total = len(settings.horizons) * len(settings.seeds)
    with tqdm(total=total, unit="horizon", disable=not args.verbose) as bar:
        rows = measure(settings, bar.update)
    cli.write_rows(rows, target, ("horizon", "seed", "estimator"))
    import pandas as pd

    from hgrpo.sandbox.opd.experiments.figures import variances

    panels = {
        "projection_var": "variance of a projection",
        "relative_variance": "variance / squared mean",
    }
    with atomic_file(target.with_suffix(".png")) as path:
        variances(pd.DataFrame(rows), panels, path)
    if args.verbose:
        print(f"{target}: {len(rows)} rows")


def train_settings(args: argparse.Namespace) -> OpdSettings:
    """The settings of the run that the flags of `train` ask for."""
    rule = RULES.get(args.method)
    phase = {"method": args.method, "rule": cli.chosen_rule(args, rule)}
    given = _given(args, OpdSettings) | {"phases": (phase,)}
    return cli.checked(OpdSettings, given, "opd", cli.flag_names(rule))


def variant_settings(
    args: argparse.Namespace, experiment: Experiment
) -> list[tuple[Variant, OpdSettings]]:
    """Each variant of an experiment with its settings.

    Raises:
        UserError: a flag is wrong, or a variant cannot run.
    """
    given = dict(experiment.defaults) | _given(args, OpdSettings)
    own = validate(experiment.own, _given(args, experiment.own), args.experiment)
    return [
        (variant, validate(OpdSettings, given | {"phases": variant.phases}, args.experiment))
        for variant in experiment.variants(own, given)
    ]


def _unread(run: OpdSettings) -> list[str]:
    """A line for each setting of a teacher that the task does not have."""
    soft = run.task == "soft_reversal"
    names = {
        "teacher_epsilon": not soft,
        "teacher_temperature": soft,
        "special_token_weight": soft,
    }
    return cli.unread_fields(run, {f"task {run.task}": names})


def _given(args: argparse.Namespace, model: type[Strict]) -> dict[str, Any]:
    """The fields that flags give, and the seeds where the model has some."""
    seeds = {"seeds": cli.chosen_seeds(args)} if "seeds" in model.model_fields else {}
    return cli.chosen_fields(args, model) | seeds


def _train_all(args: argparse.Namespace, runs: Sequence[OpdSettings]) -> list[list[dict]]:
    cli.prepare_torch(args.device)
    from hgrpo.sandbox.opd.experiments.train_all import train_all

    total = sum(each.num_steps for each in runs)
    with tqdm(total=total, unit="step", disable=not args.verbose) as bar:
        return train_all(runs, bar.update)


def _labelled(row: Mapping[str, Any], variant: Variant) -> dict[str, Any]:
    switch = {} if variant.switch is None else {"is_switch": row["step"] == variant.switch}
    return {**row, **switch, "variant": variant.name, **variant.columns}


def _named(args: argparse.Namespace, pattern: str, run: OpdSettings, variant: str = "") -> str:
    return pattern.format(name=args.experiment, task=run.task, variant=variant)


def _draw(
    experiment: Experiment, rows: Sequence[Mapping[str, Any]], run: OpdSettings, target: Path
) -> None:
    import pandas as pd

    from hgrpo.sandbox.opd.experiments.figures import curves, last_errors

    table = pd.DataFrame(rows)
    with atomic_file(target) as path:
        if experiment.panels is None:
            last_errors(table, experiment.lines, path)
            return
        panels = {
            column.format(overlap=run.overlap): label.format(overlap=run.overlap)
            for column, label in experiment.panels.items()
        }
        curves(table, panels, "variant", path)


def _write(rows: Sequence[Mapping[str, Any]], target: Path) -> None:
    cli.write_rows(rows, target, [name for name in _FIRST if any(name in row for row in rows)])


def _close(args: argparse.Namespace, rows: Sequence[Mapping[str, Any]], target: Path) -> None:
    if args.verbose:
        end = max(row["step"] for row in rows)
        cli.say_written(target, rows, [row for row in rows if row["step"] == end], "test_error")
