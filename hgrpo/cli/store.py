"""Manage the results in the store: list, explain, remove and share them.

Examples:
    python -m hgrpo.cli.store list                      all results: job, time, duration, size
    python -m hgrpo.cli.store show results/bakeoff/sft  a result's inputs, dependents and links
    python -m hgrpo.cli.store why study=bakeoff         jobs to run, and the changes behind them
    python -m hgrpo.cli.store why results/bakeoff/sft   changes since the previous result
    python -m hgrpo.cli.store gc                        remove unreferenced results
    python -m hgrpo.cli.store export study=bakeoff methods=Vine seeds=11 --out vine.tar
    python -m hgrpo.cli.store import vine.tar           import results; runs then reuse them
"""

import argparse
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from hgrpo.cli.entry import add_settings, command_parser, named_study
from hgrpo.command import run
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError, did_you_mean
from hgrpo.store.archive import pack, unpack, with_ancestors
from hgrpo.store.differences import as_planned, causes, differences, newest
from hgrpo.store.entry import PLAN, key_of, link, read_all, read_made, read_plan, sources
from hgrpo.store.lock import locked
from hgrpo.store.plan import MADE, OF_ARMS, STORE, Plan, Planned, flat
from hgrpo.study.overrides import as_config

# Folder with links to imported jobs. The command `gc` does not delete jobs that have a link.
IMPORTED = STORE.with_name("imported")
_REMOVED = ".removed-"
RESULT = "a path below results/<study>, a key or its first digits"


def main() -> None:
    """Run the subcommand."""
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: Callable[[argparse.Namespace], None], about: str):
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(function=function)
        return command

    add("list", show_list, "list all results in the store")
    add("show", show, "show how and where a result was made").add_argument("result", help=RESULT)
    reason = add("why", why, "explain why jobs are going to run, or why a finished job ran")
    add_settings(reason, f"any key of a study; or {RESULT}; or two results, the older one first")
    collect = add("gc", remove_unnamed, "remove results that are not linked from any study")
    collect.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    export = add("export", export_arms, "pack finished arms into an archive")
    add_settings(export)
    export.add_argument("--out", type=Path, required=True, help="archive to write")
    lead = add("link", make_link, "link a path below results/<study> to the store")
    lead.add_argument("path", type=Path, help="such as results/bakeoff/sft/summary.json")
    lead.add_argument("target", type=Path, help="the same file in results/store/<key>")
    add("import", import_arms, "import an archive").add_argument("archive", type=Path)
    args = parser.parse_args()
    args.function(args)


def links_to() -> dict[str, list[Path]]:
    """Map each key to the links to its result, and to the plan.json files that contain the key."""
    links = defaultdict(list)
    for path in sorted(STORE.parent.rglob("*")):
        if key := key_of(path):
            links[key].append(path)
    for file in STORE.parent.glob(f"*/{PLAN}"):
        for planned in read_plan(file.parent):
            links[planned.key].append(file)
    return dict(links)


def bytes_of(entry: Path) -> int:
    """Total size of a job's files, in bytes."""
    return sum(path.lstat().st_size for path in entry.rglob("*") if path.is_file())


def show_list(args: argparse.Namespace) -> None:
    """Print a line for every result."""
    links, rows = links_to(), []
    for key, made in read_all().items():
        names = ", ".join(sorted({path.parts[1] for path in links.get(key, ())}))
        row = [key, as_planned(made).name, made["finished"], made["seconds"]]
        rows.append([*row, f"{bytes_of(STORE / key) / 1e6:.1f}", names])
    print(tabulate(rows, ["key", "job", "finished", "s", "MB", "studies"]))


def by_arm(entries: Iterable[Path], records: Mapping[str, Mapping]) -> list[list]:
    """Rows of each stage and arm: stage, method, seeds, number of results, MB, newest result."""
    arms = defaultdict(list)
    for entry in entries:
        made = records.get(entry.name, {"stage": "unfinished", "job": {"method": "", "seed": 0}})
        job = made["job"]["seed"], bytes_of(entry), made.get("finished", "")
        arms[made["stage"], made["job"]["method"]].append(job)
    rows = []
    for (stage, method), jobs in sorted(arms.items()):
        numbers, sizes, times = zip(*jobs, strict=True)
        seeds = ",".join(map(str, sorted({*numbers} - {0})))
        rows.append([stage, method, seeds, len(jobs), f"{sum(sizes) / 1e6:.1f}", max(times)])
    return rows


def show(args: argparse.Namespace) -> None:
    """Print the record of a result, its links, and the jobs that read it."""
    key = key_of_result(args.result)
    records = read_all()
    made = records[key]
    rows = [["key", key], ["path", STORE / key], ["stage", made["stage"]]]
    rows += [[name, value] for name, value in made["job"].items() if value]
    names = ("finished", "seconds", "host", "processor", "revision", "code")
    rows += [[name, made[name]] for name in names]
    rows += [["settings", STORE / "settings" / f"{made['settings']}.json"]]
    rows += [["link", path] for path in links_to().get(key, ()) if path.name != PLAN]
    for source in sorted({*sources(made).values()}):
        name = as_planned(records[source]).name if source in records else "(removed)"
        rows.append(["made from", f"{source} {name}"])
    readers = [STORE / each for each in records if key in sources(records[each]).values()]
    for stage, method, seeds, *_ in by_arm(readers, records):
        rows.append(["used by", f"{stage} {method} {seeds and f'seed {seeds}'}"])
    print(tabulate(rows, tablefmt="plain"))


def key_of_result(name: str) -> str:
    """Return the key of a finished result. `name` is a path, a key or the beginning of a key."""
    path, store = Path(name), STORE.resolve()
    if store in path.resolve().parents:
        key = path.resolve().relative_to(store).parts[0]
        if (STORE / key / MADE).is_file():
            return key
        again = "`python -m hgrpo.cli.store why study=<study>` prints the command to recreate it"
        raise UserError(f"{name}: links to {STORE / key}, which contains no result; {again}")
    if path.exists():
        raise UserError(f"{name}: not the result of one job; pass the folder or file of one job")
    if "/" in name:
        there = next(each for each in path.parents if each.exists())
        missing = path.relative_to(there).parts[0]
        near = did_you_mean(missing, [each.name for each in there.iterdir()])
        raise UserError(f"{name}: no {missing} in {there}{near}")
    keys = [key for key in read_all() if key.startswith(name)]
    if len(keys) != 1:
        matches = f"{len(keys)} results: {', '.join(keys)}" if keys else "no result"
        raise UserError(f"{name}: this prefix matches {matches}")
    return keys[0]


def why(args: argparse.Namespace) -> None:
    """Print why a run would start jobs, or why a finished job ran."""
    records = read_all()
    if args.settings and "=" not in args.settings[0].partition("/")[0]:
        _print_causes([records[key_of_result(name)] for name in args.settings], records)
        return
    plan = Plan(named_study(args.settings))
    rows = {each: differences(plan, each, records) for each in plan.to_run()}
    for each in plan.jobs():
        if each not in rows and not each.whole:
            command = _command(plan, each, args.settings)
            rows[each] = f"missing, but the report does not require it; to make it, run: {command}"
    table = [[each.name, reason] for each, reason in rows.items()]
    print(tabulate(table, ["job", "reason"]) if rows else "nothing to run: all results exist")


def _print_causes(results: Sequence[Mapping], records: Mapping[str, Mapping]) -> None:
    *older, new = results
    earlier = [m for m in records.values() if m["finished"] <= new["finished"] and m is not new]
    old = older[0] if older else newest(as_planned(new), earlier, new.get("study"))
    if old is None:
        print("this job has no older result; to compare two other results, run: why OLD NEW")
        return
    rows = [
        [as_planned(after).name, before["key"], after["key"], reasons]
        for before, after, reasons in causes(old, new, records)
    ]
    print(tabulate(rows, ["job", "older", "newer", "differs in"]))


def _command(plan: Plan, planned: Planned, words: Sequence[str]) -> str:
    files = flat(planned.outputs)
    lost = [path for path in files if not Path(path).exists()]
    # If only made.json is missing, Snakemake would not run the job again.
    remove = "" if lost else f"rm -r {planned.entry} && "
    target = f"{plan.root}/{(lost or files)[0].removeprefix(f'{planned.entry}/')}"
    config = ["--config", *as_config(words)] if words else []
    return remove + shlex.join(["snakemake", target, *config])


@locked(alone=True)
def remove_unnamed(args: argparse.Namespace) -> None:
    """After confirmation, remove the results that no study links to or depends on."""
    for left in filter(Path.is_dir, STORE.glob(".*")):  # folders of commands that were killed
        shutil.rmtree(left)
    names = links_to()
    keep = with_ancestors(names) | names.keys()
    unnamed = [entry for entry in STORE.glob("[0-9a-f]" * 16) if entry.name not in keep]
    if not unnamed:
        print("nothing to remove")
        return
    size = sum(map(bytes_of, unnamed))
    header = ["stage", "method", "seeds", "results", "MB", "last finished"]
    print(tabulate(by_arm(unnamed, read_all()), header))
    print(f"{len(unnamed)} results, {size / 1e6:.1f} MB, are not linked from any study")
    if not args.yes:
        print("remove them? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            sys.exit("nothing was removed")
    for entry in unnamed:
        # Rename the folder, because a partly removed folder could look like a complete result.
        shutil.rmtree(entry.rename(entry.with_name(f"{_REMOVED}{entry.name}")))


def make_link(args: argparse.Namespace) -> None:
    """Link the job that made a file into results/<study>."""
    if len(args.path.parts) < 3 or args.path.parts[0] != STORE.parts[0] or ".." in args.path.parts:
        raise UserError(f"{args.path}: expected a path below {STORE.parent}/<study>")
    link(Path(*args.path.parts[:2]), [read_made(Path(*args.target.parts[:3]))])


def export_arms(args: argparse.Namespace) -> None:
    """Export the selected arms, seeds and rounds, with all jobs that they depend on."""
    plan = Plan(named_study(args.settings))
    jobs = [each for each in plan.jobs() if each.stage in OF_ARMS]
    if args.out.exists() or not args.out.parent.is_dir():
        raise UserError(f"{args.out}: expected a new file in an existing folder")
    if lacking := [each for each in plan.to_run(jobs, again=True) if not each.whole]:
        command = _command(plan, lacking[0], args.settings)
        name = f"study {plan.study.config.name}: {lacking[0].name}"
        raise UserError(f"{name}: the result is missing or unfinished; run: {command}")
    keys = pack(jobs, args.out)
    print(f"{args.out}: {len(jobs)} jobs of {', '.join(plan.study.methods)}, {len(keys)} in all")


@locked(alone=True)
def import_arms(args: argparse.Namespace) -> None:
    """Import the jobs of an archive, and create links that protect them from `gc`."""
    new, known = unpack(args.archive)
    # Another archive may have the same name.
    folder = IMPORTED / f"{args.archive.stem}-{settings_digest(sorted(new + known))}"
    link(folder, [read_made(STORE / key) for key in new + known])
    print(f"{args.archive}: {len(new)} jobs imported, {len(known)} already existed; see {folder}")


if __name__ == "__main__":
    run(main, "nothing was damaged; run the same command again to complete it")
