"""Matches people's trajectories to the tasks of this shop, and replays their actions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hgrpo.games.base import Panels, Task
from hgrpo.games.webshop.env import open_goals
from hgrpo.games.webshop.human import HumanTrajectory
from hgrpo.games.webshop.prices import split_limit
from hgrpo.games.webshop.session import Session
from hgrpo.games.webshop.shopper import click, searchable
from hgrpo.games.webshop.tables import GoalList

_CLOSE = 1e-9
_QUOTES = str.maketrans("", "", "\"'")


def on_panel(
    trajectories: Iterable[HumanTrajectory],
    assets: Path,
    panels: Panels,
    counts: Counter[str],
) -> list[tuple[HumanTrajectory, Task]]:
    """The trajectories whose goal is on the train panel, in the given order, each with its task.

    A log names its goal only by the wording of the instruction. If several different goals have
    this wording, the trajectory is left out. `counts` gets the number of trajectories left out, by
    reason.
    """
    goals = open_goals(assets)
    trajectories = list(trajectories)
    # Wording -> indices of the goals with that wording.
    numbers: dict[str, list[int]] = {_wording(trajectory.goal): [] for trajectory in trajectories}
    for number, text in enumerate(goals.texts()):
        if (wording := _wording(text)) in numbers:
            numbers[wording].append(number)
    tasks = {int(task.path): task for task in panels["train"]}
    held_out = {
        int(task.path): split
        for split, others in panels.items()
        if split != "train"
        for task in others
    }
    matched = []
    for trajectory in trajectories:
        task = _task(goals, numbers[_wording(trajectory.goal)], held_out, tasks)
        if isinstance(task, Task):
            matched.append((trajectory, task))
        else:
            counts[f"left out: {task}"] += 1
    return matched


def _wording(instruction: str) -> str:
    """An instruction in lower case, without its price limit, quotes and repeated blanks.

    `process_goal` of the original's `train_choice_il.py` compares goals in the same way.
    """
    text, _ = split_limit(instruction.strip().lower())
    return " ".join(text.translate(_QUOTES).split())


def _task(
    goals: GoalList, candidates: list[int], held_out: dict[int, str], tasks: dict[int, Task]
) -> Task | str:
    """The training task of the goals `candidates`, or the reason why there is none."""
    if not candidates:
        return "its instruction is not one of this shop's"
    splits = {held_out[number] for number in candidates if number in held_out}
    if splits:
        return f"its goal is on the {min(splits)} panel"
    # Goals that are equal in all fields count as one.
    if len({goals.goal(number) for number in candidates}) > 1:
        return "its instruction is that of several goals"
    return next((tasks[n] for n in candidates if n in tasks), "its goal is on no panel")


def as_shown(actions: Iterable[str], session: Session) -> Iterator[str]:
    """Yield a person's actions, spelt as an agent would spell them on the session's current page.

    A log has clicks in lower case; the page shows their true spelling. Searches lose inner
    brackets, because `search[...]` cannot contain them and they do not change the results.
    """
    for action in actions:
        verb, _, argument = action[:-1].partition("[")
        if verb == "search":
            yield f"search[{searchable(argument)}]"
        else:
            piece = session.clickables.get(argument.lower())
            yield action if piece is None else click(piece.text)


def reward_differs(recorded: float, session: Session) -> bool:
    """Whether a recorded reward differs from the reward of the replayed session.

    Each process of the original draws its own price limits. So in the recording, the price may have
    been on the other side of the limit. A difference for this reason does not count.
    """
    purchase = session.bought
    paid = purchase.total if purchase else 0.0
    parts = len(session.goal.attributes) + len(session.goal.options) + 1
    # How much the reward would change if the price were on the other side of the limit.
    swing = 0.0 if purchase is None else (-1 if purchase.price_hit else 1) / parts * purchase.r_type
    return not any(abs(recorded - other) <= _CLOSE for other in (paid, paid + swing))
