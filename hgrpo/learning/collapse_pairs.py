"""The prompts and replies of a step of which collapse is measured, and the measurement.

Each reply is scored under each prompt by teacher forcing, with the policy that played.
`hgrpo.learning.collapse` computes the numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hgrpo.agent.conversation import Replies
from hgrpo.agent.thought import find_thought
from hgrpo.games.streams import generator, key
from hgrpo.learning.batch import SampledSequence
from hgrpo.learning.collapse import collapse_metrics, distinct
from hgrpo.trajectories.log_row import ANY, FIRST, as_row
from hgrpo.trajectories.trajectory import Trajectory, Turn


@dataclass(frozen=True)
class Pair:
    """A prompt x and the reply to it, as tokens.

    Attributes:
        prompt: the whole conversation before the reply.
        lead: the reply's tokens before z; it is given, under every prompt. The opening tag of a
            thought, if the reply has one.
        z: the tokens that are scored: the thought without its tags, or the whole reply.
        thought: whether z is a thought.
    """

    prompt: tuple[int, ...]
    lead: tuple[int, ...]
    z: tuple[int, ...]
    thought: bool


def measure_step(
    trajectories: Sequence[Trajectory],
    number: int,
    stream: tuple,
    conversation: Replies,
    longest: int,
    score: Callable[[Sequence[SampledSequence]], Sequence[Tensor]],
) -> dict[str, float | None]:
    """Log entries of a step: what `measure` finds in first turns, and in turns drawn among all.

    Args:
        trajectories: all of the step, as they were played.
        number: how many trajectories are drawn, each at most once.
        stream: first parts of the names of the random streams.
        longest: most tokens of a conversation.
        score: log-probs of the sampled tokens of each sequence.
    """
    drawn = draw(trajectories, number, stream)
    turns = {
        FIRST: [trajectory.turns[0] for trajectory in drawn],
        ANY: [draw_turn(trajectory, stream) for trajectory in drawn],
    }
    numbers = {}
    for version, chosen in turns.items():
        pairs = [pair_of(t, turn, conversation) for t, turn in zip(drawn, chosen, strict=True)]
        numbers[version] = measure(pairs, longest, score)
    return as_row(numbers)


def draw(trajectories: Sequence[Trajectory], number: int, stream: tuple) -> list[Trajectory]:
    """At most `number` trajectories, drawn without replacement.

    Which are drawn depends on the trajectories' tasks and numbers, not on their order.
    """

    def place(trajectory: Trajectory) -> int:
        return key("collapse", *stream, trajectory.task.task_id, trajectory.rollout)

    return sorted(trajectories, key=place)[:number]


def draw_turn(trajectory: Trajectory, stream: tuple) -> Turn:
    """One of the trajectory's turns; all have the same chance."""
    name = ("collapse turn", *stream, trajectory.task.task_id, trajectory.rollout)
    return trajectory.turns[int(generator(*name).integers(len(trajectory.turns)))]


def pair_of(trajectory: Trajectory, turn: Turn, conversation: Replies) -> Pair:
    """The turn's prompt and reply."""
    prompt, reply = tuple(trajectory.token_ids[: turn.span[0]]), tuple(turn.token_ids)
    closed = reply[-1] == conversation.end_id
    thought = find_thought(reply[:-1] if closed else reply, conversation.written)
    if thought is None:
        return Pair(prompt, (), reply, False)
    return Pair(prompt, reply[: thought[0]], reply[slice(*thought)], True)


def measure(
    pairs: Sequence[Pair],
    longest: int,
    score: Callable[[Sequence[SampledSequence]], Sequence[Tensor]],
) -> dict[str, float | None]:
    """The numbers of `collapse_metrics`, and counts: `left_out`, and replies that are `thoughts`.

    A pair is left out if its prompt and the longest of all replies have more than `longest` tokens
    together, so that every reply that remains fits every prompt. If none remains, `pairs` is 0 and
    the other numbers are not there.
    """
    most = max((len(pair.lead) + len(pair.z) for pair in pairs), default=0)
    fitting = [pair for pair in pairs if len(pair.prompt) + most <= longest]
    counts = {
        "left_out": len(pairs) - len(fitting),
        "thoughts": sum(pair.thought for pair in fitting),
    }
    if not fitting:
        return {"pairs": 0, **counts}
    prompts, columns = distinct([pair.prompt for pair in fitting])
    # Equal replies have equal log-probs; commands are often equal.
    replies, which = distinct([(pair.lead, pair.z) for pair in fitting])
    logs = [
        [float(each.double().sum()) for each in score([_together(x, *reply) for reply in replies])]
        for x in prompts
    ]
    logprobs = np.array(logs).T[which]
    tokens = np.array([len(pair.z) for pair in fitting])
    return collapse_metrics(logprobs, columns, tokens) | counts


def _together(
    prompt: tuple[int, ...], lead: tuple[int, ...], z: tuple[int, ...]
) -> SampledSequence:
    start = len(prompt) + len(lead)
    return SampledSequence([*prompt, *lead, *z], [(start, start + len(z))])
