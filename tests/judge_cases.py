"""Household trajectories, groups, prompts and settings for tests of the judge."""

import subprocess
import sys
from pathlib import Path

from hgrpo.credit.base import Group
from hgrpo.credit.judge import Settings
from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.cache import Database
from hgrpo.credit.judge.protocol import prompt
from hgrpo.games.base import Task
from hgrpo.games.kinds import load
from hgrpo.trajectories.trajectory import Trajectory, Turn

GOAL = "put a hot mug in shelf"
ROOM = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a desk 1, "
    f"a microwave 1, a shelf 1, and a shelf 2.\n\nYour task is to: {GOAL}."
)
# (action, its effect, the score of the offline rubric)
WON = [
    ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a book 1, and a pen 1.", 4),
    ("fly to shelf 1", "Nothing happens.", 0),
    ("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed.", 4),
    ("open cabinet 1", "You open the cabinet 1. In it, you see a mug 1.", 8),
    ("take mug 1 from cabinet 1", "You pick up the mug 1 from the cabinet 1.", 9),
    ("go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed.", 7),
    ("heat mug 1 with microwave 1", "You heat the mug 1 using the microwave 1.", 10),
    ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see nothing.", 7),
    ("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.", 10),
]


def trajectory(steps, success=False, rollout=0, goal=GOAL, opening=ROOM, env_return=None):
    """A trajectory of (action, effect, ...) steps; the return comes with the last turn."""
    value = float(success) if env_return is None else env_return
    observations = [opening, *(step[1] for step in steps)]
    turns = [
        Turn(
            observation=observation,
            action=step[0],
            span=(0, 1),
            env_reward=value if i == len(steps) - 1 else 0.0,
            progress=0.0,
            admissible=True,
            overlong=False,
        )
        for i, (observation, step) in enumerate(zip(observations, steps, strict=False))
    ]
    task = Task("task", "games/task", "hash", "pick_heat_then_place_in_recep")
    return Trajectory(task, rollout, goal=goal, turns=turns, success=success, truncated=not success)


def failures(n, start=0, length=4):
    """`n` different failed trajectories: the mug is found, but what is asked is not done."""
    return [
        trajectory(
            [
                (f"go to desk {i}", f"You arrive at desk {i}. On the desk {i}, you see nothing."),
                ("go to desk 0", f"You arrive at desk 0. On the desk 0, you see a mug {i}."),
                (f"take mug {i} from desk 0", f"You pick up the mug {i} from the desk 0."),
                *[("look", f"You are facing the desk 0, for the {t}th time.") for t in range(4)],
            ][:length],
            rollout=i,
        )
        for i in range(start + 1, start + n + 1)
    ]


def odd_trajectories():
    """Three trajectories with unusual texts: other scripts, long, empty, not encodable."""
    return [
        trajectory([("nimm Töpfchen 1 \n{}", 'éß猫 "{[')], goal="stell das Töpfchen weg 🫖"),
        trajectory([("look", "a " * 5_000), ("look", "b")], opening="long " * 2_000),
        trajectory([("", "Nothing happens."), ("look\u2028", "\udc80")], env_return=0.25),
    ]


def prompt_of(trajectories, variant="trajectory", environment="alfworld"):
    """The prompt that shows these trajectories."""
    return prompt(environment, load(environment).judge_text().primer, trajectories, variant)


def group(trajectories):
    """A group of these trajectories."""
    return Group(list(trajectories), ("test",))


def settings(**changes):
    """Settings for the offline rubric or another free model, without pauses."""
    free = {"dollars_per_million_input": 0.0, "dollars_per_million_output": 0.0}
    base = {"model": "offline-rubric", "base_url": "service", "backoff_s": 0.0} | free
    return Settings(**(base | changes))


def account_of(folder, **changes):
    """An account on the study's file in `folder`, for settings with these changes."""
    chosen = settings(**changes)
    return Account(chosen, Database(folder / "judge.sqlite"))


def counted(judge):
    """Everything that a judge has counted so far, over all its reports."""
    return judge.account.report()


def two_jobs(project: Path, script: str, *arguments: object) -> list[str]:
    """The output of two processes that run `script` in parallel; each first waits for a line."""
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            env={"PYTHONPATH": f"{project}:{project / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for _ in range(2)
    ]
    for job in jobs:
        job.stdin.write("go\n")
        job.stdin.flush()
    done = [job.communicate(timeout=120) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], done
    return [out for out, _ in done]


def values(rows):
    """Credit as lists."""
    return [row.tolist() for row in rows]


def by_rules(played):
    """The offline rubric's scores of a trajectory."""
    turns = [(turn.observation, turn.action) for turn in played.turns]
    return load("alfworld").judge_text().score(played.goal, turns, played.success)
