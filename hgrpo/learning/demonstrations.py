"""Expert trajectories as training examples."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from hgrpo import parquet
from hgrpo.agent.conversation import Conversation
from hgrpo.errors import UserError, one_line
from hgrpo.learning.imitation import Example


def read_demonstrations(expert: Path) -> list[dict]:
    """Read an expert folder: one row {task_id, observations [T + 1], actions [T]} per trajectory.

    Raises:
        UserError: the file is missing, or the expert stage did not write it.
    """
    path = expert / "trajectories.parquet"
    try:
        columns = ["task_id", "observations", "actions"]
        rows = pq.read_table(path, columns=columns, **parquet.READ).to_pylist()
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run the expert stage first") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: damaged, or not an expert file ({one_line(error)})") from None
    for number, row in enumerate(rows):
        seen, actions = row["observations"] or [], row["actions"] or []
        if len(seen) != len(actions) + 1 or None in [*seen, *actions]:
            raise UserError(
                f"{path}: row {number}, task {row['task_id']}: {len(seen)} observations for "
                f"{len(actions)} actions, or a text is missing; one more than actions was expected"
            )
    return rows


def texts(demonstrations: list[dict]) -> Iterator[str]:
    """Every observation and every action."""
    for row in demonstrations:
        yield from row["observations"]
        yield from row["actions"]


def as_example(row: dict, conversation: Conversation, whole_text: bool) -> Example:
    """Make one token sequence of a row of `read_demonstrations`.

    The loss is computed on the actions or, with `whole_text`, on every token but the first.
    """
    ids = conversation.opening(row["observations"][0])
    spans = []
    for action, answer in zip(row["actions"], row["observations"][1:], strict=True):
        reply = conversation.reply(action)
        spans.append((len(ids), len(ids) + len(reply)))
        ids = ids + reply + conversation.observation(answer)
    if whole_text:
        return Example(ids, [(1, len(ids))])
    # No action follows the last observation, so this observation is cut off.
    return Example(ids[: spans[-1][1]], spans)


def examples(
    demonstrations: list[dict], conversation: Conversation, max_length: int, whole_text: bool
) -> tuple[list[Example], int]:
    """Examples of at most `max_length` tokens, and the number of longer ones, which are left out.

    Demonstrations without actions are skipped and not counted.
    """
    made = [
        as_example(row, conversation, whole_text) for row in demonstrations if len(row["actions"])
    ]
    fitting = [example for example in made if len(example.token_ids) <= max_length]
    return fitting, len(made) - len(fitting)
