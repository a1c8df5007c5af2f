"""List the trajectories in one step of a finished round, or print a trajectory turn by turn.

Examples:
  python -m hgrpo.cli.trajectory results/bakeoff/rl/Progressive/seed_11/round_3
  python -m hgrpo.cli.trajectory results/bakeoff/rl/Progressive/seed_11/round_3 --step 5 --number 12
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.trajectories.store import KEY, SEQUENCES_FILE, TURNS_FILE, read_sequences, read_turns

_OF_ONE = (*KEY, "task_type", "goal", "env_return", "success", "truncated", "final_observation")
_NUMBERS = ("env_reward", "progress", "credit", "advantage")


def main() -> None:
    """Print the list, or the chosen trajectory."""
    parser = command_parser(__doc__)
    parser.add_argument("round", type=Path, help="folder of a round")
    parser.add_argument(
        "--step", type=int, default=0, help="step of the round, from 0 (default: 0)"
    )
    parser.add_argument("--number", type=int, help="number of the trajectory to show")
    args = parser.parse_args()
    played = read_sequences(args.round / SEQUENCES_FILE, _OF_ONE, args.step).to_pylist()
    turns = read_turns(args.round / TURNS_FILE, step=args.step).to_pylist()
    by_trajectory = [[turn for turn in turns if _key(turn) == _key(one)] for one in played]
    if args.number is None:
        print("\n".join(listed(played, by_trajectory)))
    elif 0 <= args.number < len(played):
        print("\n".join(described(played[args.number], by_trajectory[args.number])))
    else:
        raise UserError(f"--number {args.number}: expected a number from 0 to {len(played) - 1}")


def listed(played: Sequence[Mapping], turns: Sequence[Sequence[Mapping]]) -> list[str]:
    """Return one line per trajectory, from rows of sequences.parquet and of turns.parquet."""
    lines = ["number  return  turns  rollout  task"]
    for number, (one, its_turns) in enumerate(zip(played, turns, strict=True)):
        figures = f"{number:6}  {one['env_return']:6g}  {len(its_turns):5}  {one['rollout']:7}"
        lines.append(f"{figures}  {one['task_type']}: {one['goal']}")
    return lines


def described(one: Mapping, turns: Sequence[Mapping]) -> list[str]:
    """The lines of one trajectory, turn by turn; missing values are omitted."""
    end = "success" if one["success"] else "cut off" if one["truncated"] else "no success"
    place = ", ".join(f"{name} {one[name]}" for name in KEY)
    lines = [place, f"{one['goal']} (return {one['env_return']:g}, {end})"]
    for turn in turns:
        notes = [f"{name} {turn[name]:.3g}" for name in _NUMBERS if turn[name] is not None]
        notes += [] if turn["admissible"] else ["not admissible"]
        lines += ["", *_indented(turn["observation"])]
        lines += [f"{turn['turn'] + 1:3} > {_plain(turn['action'])}", f"      {', '.join(notes)}"]
    return [*lines, "", *_indented(one["final_observation"] or "")]


def _key(row: Mapping) -> tuple:
    return tuple(row[name] for name in KEY)


def _plain(text: str) -> str:
    """Replace control characters, which a policy may generate, with spaces."""
    return "".join(character if character.isprintable() else " " for character in text)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(_plain(text), 96, initial_indent="      ", subsequent_indent="      ")


if __name__ == "__main__":
    run(main)
