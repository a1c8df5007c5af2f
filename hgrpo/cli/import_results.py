"""Take arms and seeds that a colleague exported into the same study here.

The command compares what the results were made with: settings and code of every stage, the panels,
the base model and the SFT policy. If something differs, it names that and changes nothing. Imported
results count as finished: none of their jobs runs again. If their settings or code change, a run
stops before it overwrites them.

Examples:
    python -m hgrpo.cli.import_results bakeoff-LLMJudge_Progressive-seeds_11_23.tar
    python -m hgrpo.cli.import_results share.tar training.lr=1e-4
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from hgrpo.cli.entry import add_settings, command_parser
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.study.overrides import OF_THE_RUN, as_config, read_assignments
from hgrpo.study.study import load_study
from hgrpo.workflow.exchange.belongs import check_belongs
from hgrpo.workflow.exchange.manifest import Manifest, exchanged_jobs, holds_start
from hgrpo.workflow.exchange.pack import read_manifest, unpack
from hgrpo.workflow.study_lock import hold_study
from hgrpo.workflow.telling_line import telling_line
from hgrpo.workflow.watch.jobs import StudyJob


def main() -> None:
    """Compare, unpack, and let Snakemake record the results."""
    parser = command_parser(__doc__)
    parser.add_argument("archive", type=Path, help="an archive that hgrpo.cli.export wrote")
    about = "keys that the study was run with; study= only checks that the archive is of that one"
    add_settings(parser, about)
    args = parser.parse_intermixed_args()
    manifest = read_manifest(args.archive)
    given = chosen(args.archive, manifest, read_assignments(args.settings))
    path = Path("configs/studies") / f"{manifest.study}.yaml"
    study = load_study(path, given)
    results = Path("results") / manifest.study
    jobs = exchanged_jobs(study, results, start=holds_start(manifest))
    words = [f"study={manifest.study}", *(f"{key}={value}" for key, value in given.items())]
    with hold_study(results):
        check_belongs(args.archive, manifest, study, jobs, results)
        new = unpack(args.archive, manifest, results)
        _record(jobs, as_config(words))
    print(
        f"{', '.join(manifest.methods)}; seeds {', '.join(map(str, manifest.seeds))}; "
        f"{manifest.rounds} rounds: {len(new)} of {len(manifest.files)} files are new in {results}"
    )


def chosen(archive: Path, manifest: Manifest, given: Mapping[str, str]) -> dict[str, str]:
    """The settings with which to load the local study: the given ones, and what the archive holds.

    Raises:
        UserError: the settings name another study, or other arms, seeds or rounds.
    """
    held = {
        "study": manifest.study,
        "methods": ",".join(manifest.methods),
        "seeds": ",".join(map(str, manifest.seeds)),
        "rounds": str(manifest.rounds),
    }
    for key in held.keys() & given.keys():
        if given[key] != held[key]:
            raise UserError(
                f"{archive}: holds {key}={held[key]}, not {given[key]}; an import takes all that "
                f"an archive holds, and {key}= can be left out"
            )
    own = {key: value for key, value in given.items() if key not in OF_THE_RUN}
    return own | {key: value for key, value in held.items() if key != "study"}


def _record(jobs: list[StudyJob], config: list[str]) -> None:
    """Let Snakemake take the jobs for finished, with the present settings; and no other job."""
    # The files come first: the options take all words that follow them.
    files = [job.outputs[0] for job in jobs]
    rules = dict.fromkeys(job.stage for job in jobs)
    command = [sys.executable, "-m", "snakemake", *files, "--touch", "--force", "--quiet", "all"]
    command += ["--allowed-rules", *rules, "--config", *config, "reuse=no"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        said = telling_line(done.stderr) or telling_line(done.stdout) or "no message"
        raise UserError(f"the files are in place, but snakemake does not take them: {said}")


if __name__ == "__main__":
    run(main)
