"""Reads the trajectories back from a judge's prompt."""

import json
from dataclasses import dataclass, field

from hgrpo.errors import UserError


@dataclass
class Record:
    """One trajectory as the prompt shows it: a pair (observation, action) for every turn."""

    turns: list[tuple[str, str]] = field(default_factory=list)
    completed: bool = False


def read(message: str) -> tuple[str, str, list[Record]]:
    """Environment, goal and trajectories in a prompt's user message.

    Raises:
        UserError: the lines of JSON are not those that `prompts.prompt` writes.
    """
    try:
        lines = [json.loads(line) for line in message.split("\n") if line.startswith("{")]
        environment, goal = lines[0]["environment"], lines[0]["goal"]
        records: list[Record] = []
        for line in lines[1:]:
            if line["trajectory"] == len(records):
                records.append(Record())
            record = records[line["trajectory"]]
            if "outcome" in line:
                record.completed = line["outcome"]["success"]
            else:
                record.turns.append((line["observation"], line["action"]))
        if not isinstance(environment, str) or not isinstance(goal, str):
            raise TypeError
    except (ValueError, KeyError, IndexError, TypeError):
        raise UserError("the message is not a judge's prompt") from None
    if not records or not all(record.turns for record in records):
        raise UserError("the message shows no turn to score")
    return environment, goal, records
