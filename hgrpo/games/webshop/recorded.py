"""Matches human trajectories to tasks of this shop, so that their actions can be replayed."""

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
    """Return the trajectories whose goal is on the train panel, in order, each with its task.

    In a log, a goal is identified only by the wording of its instruction. A trajectory is therefore
    excluded if several distinct goals have this wording. `counts` maps a reason to the number of
    excluded trajectories, and is updated in place.
    """
    goals = open_goals(assets)
    trajectories = list(trajectories)
    # Wording -> indices of its goals.
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
    """Normalise an instruction: lower case, without price limit, quotes and repeated blanks.

    The rules are those of `process_goal` in the original's `train_choice_il.py`.
    """
    text, _ = split_limit(instruction.strip().lower())
    return " ".join(text.translate(_QUOTES).split())


def _task(
    goals: GoalList, candidates: list[int], held_out: dict[int, str], tasks: dict[int, Task]
) -> Task | str:
    """Return the training task whose goal is a candidate, or the reason why there is none."""
    if not candidates:
        return "its instruction is not one of this shop's"
    splits = {held_out[number] for number in candidates if number in held_out}
    if splits:
        return f"its goal is on the {min(splits)} panel"
    # Candidates with equal fields are the same goal, so they are not ambiguous.
    if len({goals.goal(number) for number in candidates}) > 1:
        return "its instruction is that of several goals"
    return next((tasks[n] for n in candidates if n in tasks), "its goal is on no panel")


def as_shown(actions: Iterable[str], session: Session) -> Iterator[str]:
    """Yield human actions, with clicks spelled as on the session's current page.

    In logs, clicks are in lower case. Brackets in search words are removed, because `search[...]`
    cannot contain them. Brackets do not affect the results of a search.
    """
    for action in actions:
        verb, _, argument = action[:-1].partition("[")
        if verb == "search":
            yield f"search[{searchable(argument)}]"
        else:
            piece = session.clickables.get(argument.lower())
            yield action if piece is None else click(piece.text)


def reward_differs(recorded: float, session: Session) -> bool:
    """Whether a recorded reward differs from the reward in the replayed session.

    A difference that a different price limit would explain is ignored, because each process of the
    original draws different limits.
    """
    purchase = session.bought
    paid = purchase.total if purchase else 0.0
    parts = len(session.goal.attributes) + len(session.goal.options) + 1
    # Change in the reward if the price were on the other side of the limit.
    swing = 0.0 if purchase is None else (-1 if purchase.price_hit else 1) / parts * purchase.r_type
    return not any(abs(recorded - other) <= _CLOSE for other in (paid, paid + swing))
