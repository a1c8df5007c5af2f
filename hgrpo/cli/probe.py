"""Check whether a machine can run a study, then run one training step from end to end.

The command checks packages, GPUs, the engine, API keys, data, the model and its chat template, and
disk space. With a cluster profile, it also checks Snakemake's plug-in and Slurm. It exits with
status 2 if a requirement is missing. Otherwise, it runs the whole pipeline in
results/.probe/<study>, with one training step per round and a small number of test games. If this
succeeds, it deletes these results.

Examples:
    python -m hgrpo.cli.probe study=webshop_5x40_cpu
    python -m hgrpo.cli.probe --check-only study=alfworld_5x40
    python -m hgrpo.cli.probe --profile profiles/one-gpu study=alfworld_5x40
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from hgrpo.cli.entry import add_profile, add_settings, command_parser, named_study
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.store.code import PACKAGE
from hgrpo.study.overrides import as_config
from hgrpo.workflow.packages import Finding
from hgrpo.workflow.planning.profile import read_profile
from hgrpo.workflow.probe import findings, one_step

FOLDER = Path("results/.probe")
# Number of lines of Snakemake's output to show after a failure.
_TAIL = 20


def main() -> None:
    """Print the checks, then run one training step."""
    parser = command_parser(__doc__)
    add_settings(parser)
    add_profile(parser, "folder of a profile (default: profiles/laptop)")
    parser.add_argument("--check-only", action="store_true", help="do not run a training step")
    args = parser.parse_intermixed_args()
    profile = read_profile(args.profile)
    if profile.in_bucket and not args.check_only:
        raise UserError(
            f"{args.profile}: the test run would write to the bucket with the results; pass "
            "--check-only to check only this machine"
        )
    study = named_study(args.settings)
    needs = findings(study, os.environ, Path(), profile)
    print("\n".join(lines(needs)))
    if lacking := [finding.name for finding in needs if finding.lacking]:
        raise UserError(f"study {study.config.name}: missing on this machine: {', '.join(lacking)}")
    if not args.check_only:
        print("one step of every stage ...", flush=True)
        _run_one_step(one_step(study), args.profile, FOLDER / study.config.name)


def lines(needs: list[Finding]) -> list[str]:
    """One line per finding: `+` is available, `-` is missing, `?` depends on the compute node."""
    width = max(len(finding.name) for finding in needs)
    marks = {False: "+", True: "-", None: "?"}
    return [f"{marks[each.lacking]} {each.name:<{width}}  {each.text}" for each in needs]


def _run_one_step(settings: list[str], profile: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # A profile may refer to files by paths relative to the project's folder.
    (folder / "profiles").symlink_to(Path("profiles").resolve())
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", str(profile)]
    command += ["--directory", str(folder), "--config", *as_config(settings)]
    began = time.perf_counter()
    # The jobs start in another folder, but must import the same code as this process.
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=env)
    (folder / "snakemake.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        print(*done.stderr.splitlines()[-_TAIL:], sep="\n", file=sys.stderr)
        raise UserError(f"the test run failed; see {folder}/snakemake.log")
    shutil.rmtree(folder)
    print(f"all stages ran: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    run(main)
