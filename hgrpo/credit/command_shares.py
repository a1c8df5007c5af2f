"""How likely the policy was to choose each of several commands before turns of trajectories."""

from collections.abc import Mapping, Sequence

import numpy as np

from hgrpo.credit.base import Context
from hgrpo.trajectories.trajectory import Trajectory


def command_shares(
    context: Context,
    trajectories: Sequence[Trajectory],
    commands: Sequence[Mapping[int, Sequence[str]]],
) -> list[dict[int, np.ndarray]]:
    """The policy's probabilities among the commands of some turns; those of a turn sum to 1.

    Args:
        commands: for each trajectory, turn -> two or more different commands.

    Returns:
        For each trajectory, turn -> float64 [commands].
    """
    from hgrpo.policy.choices import Choice, choice_probabilities

    reply = context.conversation.reply
    choices = [
        [Choice(t.turns[turn].span[0], [reply(a) for a in row[turn]]) for turn in row]
        for t, row in zip(trajectories, commands, strict=True)
    ]
    sequences = [trajectory.token_ids for trajectory in trajectories]
    temperature = context.collector.temperature
    shares = choice_probabilities(context.policy, sequences, choices, temperature)
    return [dict(zip(row, found, strict=True)) for row, found in zip(commands, shares, strict=True)]
