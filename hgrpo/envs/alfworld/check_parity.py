"""Check the native ALFWorld engine against the official one on a folder of games.

Both engines play each game's walkthrough and random walks, in the language of the file and in the
older one ("put X in/on Y"). After every command, feedback, admissible commands and the won flag
must be equal. The official engine runs with a cache. --stock-steps also plays it without the cache,
and gives the speed ratio. This needs the extra `alfworld`.

Example:
  python -m hgrpo.envs.alfworld.check_parity ~/alfworld/json_2.1.1/valid_seen --stock-steps 20
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.command import run
from hgrpo.envs.alfworld.gamefile import list_games
from hgrpo.envs.alfworld.parity import GameReport, check_games
from hgrpo.envs.alfworld.textworld_engine import require_textworld

_SHOWN = 5


def main() -> None:
    """Parse the arguments, check every game, print the totals; exit 1 on a mismatch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of games: <split>/<task>/<trial>")
    parser.add_argument("--steps", type=int, default=200, help="random steps a game and language")
    parser.add_argument(
        "--stock-steps", type=int, default=10, help="steps a game in the untouched official engine"
    )
    parser.add_argument("--games", type=int, help="check only the first games")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the totals here")
    args = parser.parse_args()
    require_textworld()
    tasks = list_games(args.folder).tasks[: args.games]
    reports = []
    folders = [args.folder / task.path for task in tasks]
    checks = check_games(folders, args.steps, args.stock_steps, args.seed)
    bar = tqdm(checks, total=len(folders), unit="game", disable=None)
    for report in bar:
        reports.append(report)
        bar.set_postfix(mismatches=sum(len(r.mismatches) for r in reports))
    totals = summarise(reports)
    for mismatch in totals["first_mismatches"]:
        print(f"mismatch in {mismatch['game']}, {mismatch['walk']}, step {mismatch['step']}")
        print(f"  after {mismatch['command']!r}, {mismatch['what']}:")
        print(f"  official {mismatch['expected']!r}\n  native   {mismatch['found']!r}")
    for key, value in totals.items():
        if key != "first_mismatches":
            print(f"{key.replace('_', ' ')}: {value}")
    if args.json:
        with atomic_file(args.json) as scratch:
            scratch.write_text(json.dumps(totals, indent=1) + "\n")
    if totals["mismatches"]:
        sys.exit(1)


def summarise(reports: list[GameReport]) -> dict:
    """Totals of all games; rates are steps per second, listing the commands at every step."""
    mismatches = [mismatch for report in reports for mismatch in report.mismatches]
    stock_steps = sum(report.stock_steps for report in reports)
    stock = sum(report.stock_seconds for report in reports)
    native = sum(report.native_seconds for report in reports)
    bare = sum(report.native_bare_seconds for report in reports)
    totals = {
        "games": len(reports),
        "steps": sum(report.steps for report in reports),
        "mismatches": len(mismatches),
        "first_mismatches": [asdict(mismatch) for mismatch in mismatches[:_SHOWN]],
    }
    if stock_steps:
        totals |= {
            "stock_steps": stock_steps,
            "official_steps_per_second": round(stock_steps / stock, 1),
            "native_steps_per_second": round(stock_steps / native, 1),
            "native_steps_per_second_without_listing": round(stock_steps / bare, 1),
            "speed_ratio": round(stock / native, 1),
        }
    return totals


if __name__ == "__main__":
    run(main)
