"""Replay recorded WebShop sessions in our engine and print the first difference.

Every line of LOG is one session, as JSON: {"goal": i, "actions": [...], "observations": [...],
"reward": r}. `observations` holds the text after every action, or one more with the first page;
`reward` is what the session was paid in the end. Price limits are drawn from the panel's seed here
and per process in the original, so they are not compared, nor is the part of a reward that hangs
on them. Nor is the page after the purchase, which states the reward.

Exit status: 0 all alike, 1 a difference, 2 a file that cannot be read.

Examples:
  python -m hgrpo.cli.webshop_replay recorded.jsonl --assets results/webshop/assets
  python -m hgrpo.cli.webshop_replay rich.jsonl --assets results/webshop/assets --rich
"""

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from hgrpo.cli.entry import run
from hgrpo.envs.webshop.env import open_goals
from hgrpo.envs.webshop.replay import compare, read_sessions
from hgrpo.envs.webshop.shop import open_shop


def main() -> None:
    """Parse the arguments and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="recorded sessions, one JSON object a line")
    parser.add_argument("--assets", type=Path, required=True, help="folder of the assets stage")
    parser.add_argument("--rich", action="store_true", help="observations are `text_rich`")
    args = parser.parse_args()
    shop, goals = open_shop(args.assets), open_goals(args.assets)
    sessions = steps = 0
    for recorded in tqdm(read_sessions(args.log), desc="replay", unit="session"):
        difference = compare(recorded, shop, goals, args.rich)
        if difference is not None:
            print(f"{args.log}:{recorded.line}: {difference}")
            sys.exit(1)
        sessions += 1
        steps += len(recorded.actions)
    print(f"{sessions} sessions with {steps} actions: no difference")


if __name__ == "__main__":
    run(main)
