"""The store of results: list it, explain a result, remove what no study names, share results.

Examples:
    python -m hgrpo.cli.store list                      every result: what, when, how long, how big
    python -m hgrpo.cli.store show results/bakeoff/sft  what a result was made from
    python -m hgrpo.cli.store why study=bakeoff         what will run, and what changed since
    python -m hgrpo.cli.store gc                        remove what no folder of results leads to
    python -m hgrpo.cli.store export study=bakeoff methods=Vine seeds=11 --out vine.tar
    python -m hgrpo.cli.store import vine.tar           then a run takes the results from the store
"""

import argparse
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from hgrpo.cli.entry import add_settings, command_parser, named_study
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.store.archive import pack, unpack, with_ancestors
from hgrpo.store.differences import differences
from hgrpo.store.entry import PLAN, key_of, link, made_entries, read_made, read_plan
from hgrpo.store.plan import MADE, STORE, Plan

_DAY_S = 86_400
# Folders of keys, among others in the store.
KEY_GLOB = "[0-9a-f]" * 16


def main() -> None:
    """Run the subcommand."""
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: Callable[[argparse.Namespace], None], about: str):
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(function=function)
        return command

    add("list", show_list, "every result in the store")
    add("show", show, "what a result was made from").add_argument("result", type=Path)
    add_settings(add("why", why, "the jobs that will run, and what changed since they last ran"))
    collect = add("gc", remove_unnamed, "remove results that no folder of results leads to")
    collect.add_argument("--yes", action="store_true", help="do not ask")
    export = add("export", export_arms, "pack finished arms into an archive")
    add_settings(export)
    export.add_argument("--out", type=Path, required=True, help="archive to write")
    lead = add("link", make_link, "let a path below results/<study> lead into the store")
    lead.add_argument("path", type=Path, help="such as results/bakeoff/sft/summary.json")
    lead.add_argument("target", type=Path, help="the same file in results/store/<key>")
    add("import", import_arms, "take an archive into the store").add_argument("archive", type=Path)
    args = parser.parse_args()
    args.function(args)


def named_by() -> dict[str, set[str]]:
    """Key -> the studies whose folders of results lead to it, or whose newest run names it."""
    studies = defaultdict(set)
    for file in STORE.parent.glob(f"*/{PLAN}"):
        for planned in read_plan(file.parent):
            studies[planned.key].add(file.parent.name)
    for path in STORE.parent.rglob("*"):
        if key := key_of(path):
            studies[key].add(path.parts[1])
    return dict(studies)


def bytes_of(entry: Path) -> int:
    """Bytes of all files of an entry."""
    return sum(path.lstat().st_size for path in entry.rglob("*") if path.is_file())


def show_list(args: argparse.Namespace) -> None:
    """Print a line for every result."""
    studies, rows = named_by(), []
    for entry in made_entries():
        made = read_made(entry)
        job = "{method} seed {seed} round {round}".format(**made["job"])
        row = [entry.name, made["stage"], job if made["job"]["method"] else "", made["finished"]]
        names = ", ".join(sorted(studies.get(entry.name, ())))
        rows.append([*row, made["seconds"], f"{bytes_of(entry) / 1e6:.1f}", names])
    print(tabulate(rows, ["key", "stage", "run", "finished", "s", "MB", "studies"]))


def show(args: argparse.Namespace) -> None:
    """Print the record of a result, which is named by its key or by a path that leads to it."""
    path = args.result if args.result.exists() else STORE / args.result
    try:
        key = path.resolve().relative_to(STORE.resolve()).parts[0]
    except (ValueError, IndexError):
        raise UserError(f"{args.result}: neither a key nor a path of a result") from None
    made = read_made(STORE / key)
    rows = [["key", key], ["stage", made["stage"]]]
    rows += [[name, value] for name, value in made["job"].items() if value]
    names = ("finished", "seconds", "host", "processor", "revision", "code")
    rows += [[name, made[name]] for name in names]
    rows += [["settings", STORE / "settings" / f"{made['settings']}.json"]]
    sources = sorted({path.partition("/")[0] for each in made["inputs"].values() for path in each})
    rows += [["made from", f"{key} {_stage(key)}"] for key in sources]
    print(tabulate(rows, tablefmt="plain"))


def _stage(key: str) -> str:
    return read_made(STORE / key)["stage"] if (STORE / key / MADE).is_file() else "(removed)"


def why(args: argparse.Namespace) -> None:
    """Print the jobs that a run would start, with what differs from the results in place."""
    plan = Plan(named_study(args.settings))
    rows = [[each.name, differences(plan, each)] for each in plan.to_run()]
    print(tabulate(rows, ["job", "reason"]) if rows else "nothing to run: all results are there")


def remove_unnamed(args: argparse.Namespace) -> None:
    """Remove the results that no results/<study> leads to, nor is made from; ask first."""
    names = named_by()
    keep = with_ancestors(names) | names.keys()
    unnamed = [entry for entry in STORE.glob(KEY_GLOB) if entry.name not in keep and _rests(entry)]
    if not unnamed:
        print("nothing to remove")
        return
    size = sum(map(bytes_of, unnamed))
    print(f"{len(unnamed)} results, {size / 1e6:.1f} MB, that no folder of results leads to")
    if not args.yes and not _agrees():
        sys.exit("nothing was removed")
    for entry in unnamed:
        # A removal that is cut short leaves no folder that looks like a result.
        shutil.rmtree(entry.rename(entry.with_name(f".removed-{entry.name}")))
    for left in STORE.glob(".*"):
        if left.is_dir() and _rests(left):
            shutil.rmtree(left)


def _rests(entry: Path) -> bool:
    """Whether a job has finished, or has not been touched for a day."""
    return (entry / MADE).is_file() or time.time() - entry.stat().st_mtime > _DAY_S


def _agrees() -> bool:
    try:
        return input("remove them? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def make_link(args: argparse.Namespace) -> None:
    """Link the job of a file into results/<study>."""
    link(Path(*args.path.parts[:2]), [Path(*args.target.parts[:3])])


def export_arms(args: argparse.Namespace) -> None:
    """Pack the arms, seeds and rounds that the settings name, and the stages before them."""
    plan = Plan(named_study(args.settings))
    stages = ("rl_round", "credit_fit", "evaluate")
    jobs = [each for each in plan.jobs() if each.stage in stages]
    if args.out.exists():
        raise UserError(f"{args.out}: is there already; remove it, or name another file")
    keys = pack(jobs, args.out)
    print(f"{args.out}: {len(jobs)} jobs of {', '.join(plan.study.methods)}, {len(keys)} in all")


def import_arms(args: argparse.Namespace) -> None:
    """Take the jobs of an archive into the store."""
    new, known = unpack(args.archive)
    print(f"{args.archive}: {len(new)} jobs taken, {len(known)} were here before")


if __name__ == "__main__":
    run(main)
