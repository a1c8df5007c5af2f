"""The experiments of opd, and its microscope, as commands that write files and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.config.read import did_you_mean, validate
from hgrpo.errors import UserError
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.opd.experiments.table import EXPERIMENTS, Experiment, Variant
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.settings import OpdSettings

_MICROSCOPE = "variance_microscope"
NAMES = (*EXPERIMENTS, _MICROSCOPE)
# Columns that come first, where there are any.
_FIRST = ("step", "phase", "is_switch", "loss", "seed", "method", "task", "variant")


class FolderOptions(cli.Options):
    """What an experiment takes beside its settings and those of its runs."""

    output_dir: Path = Field(Path("opd_results"), description="folder of its files")


def run(name: str, *words: str) -> None:
    """Check every run, train or measure, and write all files at the end.

    Raises:
        UserError: there is no such experiment, a flag is wrong, or a variant cannot run.
    """
    if name not in NAMES:
        raise UserError(f"opd {name}: no such experiment{did_you_mean(name, NAMES)}")
    if name == _MICROSCOPE:
        _measure(words)
    else:
        _compare(name, EXPERIMENTS[name], words)


def _compare(name: str, experiment: Experiment, words: Sequence[str]) -> None:
    models = (OpdSettings, experiment.own, FolderOptions)
    defaults = {"allow_degenerate": True, **experiment.defaults}
    skip = ("seeds", "phases", *experiment.fixed)
    typed = cli.read_flags(f"opd {name}", words, models, experiment.help, defaults, skip)
    options = validate(FolderOptions, cli.of_model(FolderOptions, typed), name)
    runs = variant_settings(name, experiment, typed, options)
    cli.check_folder("--output_dir", options.output_dir)
    cli.say_notes(note for _, each in runs for note in each.notes)
    cli.prepare_torch(options.device)
    from hgrpo.sandbox.opd.experiments.train_all import train_all

    total = sum(each.num_steps for _, each in runs)
    with tqdm(total=total, unit="step", disable=not options.verbose) as bar:
        logs = train_all([each for _, each in runs], bar.update)
    rows = []
    for (variant, each), log in zip(runs, logs, strict=True):
        labelled = [_labelled(row, variant) for row in log]
        file = f"{_named(name, experiment.single, each, variant.name)}.csv"
        _write(labelled, options.output_dir / file)
        rows += labelled
    target = options.output_dir / f"{_named(name, experiment.combined, runs[0][1])}.csv"
    _write(rows, target)
    _draw(experiment, rows, runs[0][1], target.with_suffix(".png"))
    if options.verbose:
        end = max(row["step"] for row in rows)
        cli.say_written(target, rows, [row for row in rows if row["step"] == end], "test_error")


def variant_settings(
    name: str, experiment: Experiment, typed: Mapping[str, Any], options: FolderOptions
) -> list[tuple[Variant, OpdSettings]]:
    """Each variant of an experiment with its settings.

    Raises:
        UserError: a flag is wrong, or a variant cannot run.
    """
    settings = validate(experiment.own, cli.of_model(experiment.own, typed), name)
    shared = cli.of_model(OpdSettings, typed) | {"seeds": options.seeds}
    whole = validate(OpdSettings, shared, name)
    return [
        (variant, validate(OpdSettings, shared | {"phases": variant.phases}, name))
        for variant in experiment.variants(settings, whole)
    ]


def _measure(words: Sequence[str]) -> None:
    models = (MicroscopeSettings, FolderOptions)
    typed = cli.read_flags(f"opd {_MICROSCOPE}", words, models, "How estimators vary.")
    options = validate(FolderOptions, cli.of_model(FolderOptions, typed), _MICROSCOPE)
    fields = cli.of_model(MicroscopeSettings, typed) | {"seeds": options.seeds}
    settings = validate(MicroscopeSettings, fields, _MICROSCOPE)
    cli.check_folder("--output_dir", options.output_dir)
    target = options.output_dir / f"{_MICROSCOPE}.csv"
    cli.prepare_torch(options.device)
    from hgrpo.sandbox.opd.microscope.measure import measure

    total = len(settings.horizons) * len(settings.seeds)
    with tqdm(total=total, unit="horizon", disable=not options.verbose) as bar:
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
    if options.verbose:
        print(f"{target}: {len(rows)} rows")


def _labelled(row: Mapping[str, Any], variant: Variant) -> dict[str, Any]:
    switch = {} if variant.switch is None else {"is_switch": row["step"] == variant.switch}
    return {**row, **switch, "variant": variant.name, **variant.columns}


def _named(name: str, pattern: str, run: OpdSettings, variant: str = "") -> str:
    return pattern.format(name=name, task=run.task, variant=variant)


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
