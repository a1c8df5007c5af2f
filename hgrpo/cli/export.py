"""Pack finished arms and seeds of a study into one file, for a colleague to import.

With `--start` the archive also holds games, demonstrations, base model and SFT policy, so that the
colleague's arms start from the same policy. Only finished results that are up to date are packed.
Without `study=` it is the study `bakeoff`.

Examples:
    python -m hgrpo.cli.export study=bakeoff methods=LLMJudge,Progressive seeds=11,23
    python -m hgrpo.cli.export study=bakeoff methods=flatGRPO --out flat.tar
    python -m hgrpo.cli.export --start study=bakeoff methods=SFTOnly seeds=11 --out start.tar
"""

from collections.abc import Mapping
from pathlib import Path

from hgrpo.cli.entry import add_profile, add_settings, command_parser
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.study.overrides import OF_THE_RUN, as_config, read_assignments
from hgrpo.study.study import load_study
from hgrpo.workflow.exchange.manifest import Manifest, exchanged_jobs
from hgrpo.workflow.exchange.pack import check_finished, pack
from hgrpo.workflow.planning.forecast import size
from hgrpo.workflow.planning.jobs import read_jobs, snakemake_summary

_DEFAULT = "bakeoff"


def main() -> None:
    """Write the archive, and say what is in it."""
    parser = command_parser(__doc__)
    add_settings(parser)
    parser.add_argument(
        "--out", type=Path, help="archive to write (default <study>-<arms>-seeds_<seeds>.tar)"
    )
    parser.add_argument("--start", action="store_true", help="also what comes before the arms")
    about = "folder of the profile that the study ran under (default profiles/laptop)"
    add_profile(parser, about)
    args = parser.parse_intermixed_args()
    given = read_assignments(args.settings)
    name = given.get("study", _DEFAULT)
    try:
        manifest, target = _export({**given, "study": name}, args.start, args.out, args.profile)
    except UserError as error:
        about = "" if "study" in given else f"study {name} (no study= was given): "
        raise UserError(f"{about}{error}") from None
    print(
        f"{target}: study {name}; {', '.join(manifest.methods)}; seeds "
        f"{', '.join(map(str, manifest.seeds))}; {manifest.rounds} rounds; {len(manifest.files)} "
        f"files, {size(target.stat().st_size)}"
    )


def _export(
    given: Mapping[str, str], start: bool, out: Path | None, profile: Path
) -> tuple[Manifest, Path]:
    """Pack what the settings name; return what the archive says of itself, and its path."""
    name = given["study"]
    own = {key: value for key, value in given.items() if key not in OF_THE_RUN}
    study = load_study(Path("configs/studies") / f"{name}.yaml", own)
    results = Path("results") / name
    seeds = "_".join(map(str, study.config.seeds))
    target = out or Path(f"{name}-{'_'.join(study.methods)}-seeds_{seeds}.tar")
    if target.is_dir():
        raise UserError(f"{target}: this is a folder; a file was expected, such as --out share.tar")
    if target.exists():
        raise UserError(f"{target}: is there already; remove it, or name another file with --out")
    jobs = exchanged_jobs(study, results, start)
    config = as_config([f"{key}={value}" for key, value in given.items()])
    check_finished(jobs, read_jobs(snakemake_summary(config, profile)))
    return pack(study, jobs, results, target), target


if __name__ == "__main__":
    run(main)
