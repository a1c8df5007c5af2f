"""Oracle credit, which is computed from the environment's hidden state.

    credit_t = w_t(a_t) - sum over admissible commands a of pi(a) w_t(a)

w_t(a) is the worth of command a before turn t, i.e. the amount by which the command increases the
final score. The environment computes the worth from its hidden state. pi(a) is the policy's
probability of command a among the admissible commands. If all admissible commands of a turn have
the same worth, the turn's credit is 0.

The credit is the turn's exact advantage under three conditions: the return is the final score,
later choices do not depend on this turn, and every reply is an admissible command. If the return is
binary success, credit and advantage differ, and at best have the same sign. In chores-hard, their
correlation is 0.62. For the exact advantage with any return, use the assigner `exact`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.games.base import finite
from hgrpo.games.kinds import load
from hgrpo.trajectories.replay import play_again
from hgrpo.trajectories.trajectory import Trajectory


class Settings(AlterableSettings):
    """Keys beside `kind: oracle`."""

    needs_policy = True
    uses = ("worths",)
    demands = {"turn_norm": ("none", "its credit is already an advantage")}

    @property
    def correlation_with_oracle(self) -> float | None:  # type: ignore[override]
        """Correlation with unaltered Oracle: 0 if shuffled, None if flipped, else the setting.

        None excludes flipped credit, which is always harmful, from comparisons by correlation.
        """
        if self.flipped:
            return None
        return 0.0 if self.shuffled else self.correlation


class OracleCredit(CreditAssigner):
    """Replays each trajectory, and gets the worth of each command before every turn."""

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        self._worths = load(context.environment).worths

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Return the credit of each turn, after `alter`.

        Raises:
            ReplayError: the environment answered differently when a turn was replayed.
        """
        credited = iter(self._credit([t for group in groups for t in group.trajectories]))
        return [
            alter([next(credited) for _ in group.trajectories], self.settings, group)
            for group in groups
        ]

    def _credit(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        worths = [self._worths_of_turns(trajectory) for trajectory in trajectories]
        # If all commands of a turn are worth the same, the credit does not depend on the policy.
        matter = [
            {t: list(worth) for t, worth in enumerate(row) if len(set(worth.values())) > 1}
            for row in worths
        ]
        shares = command_shares(self.context, trajectories, matter)
        rows = [np.zeros(len(trajectory.turns)) for trajectory in trajectories]
        for credit, played, worth, known in zip(rows, trajectories, worths, shares, strict=True):
            for t, share in known.items():
                got = worth[t].get(played.turns[t].action, 0.0)
                credit[t] = got - share @ np.array(list(worth[t].values()))
        return rows

    def _worths_of_turns(self, trajectory: Trajectory) -> list[dict[str, float]]:
        env, length = self.context.collector.make_env(), len(trajectory.turns)
        states = zip(range(length), play_again(env, trajectory, length), strict=False)
        where = f"worths: task {trajectory.task.task_id} turn"
        return [
            {a: finite(w, f"{where} {t}: {a!r}") for a, w in self._worths(env).items()}
            for t, _ in states
        ]


def command_shares(
    context: Context,
    trajectories: Sequence[Trajectory],
    commands: Sequence[Mapping[int, Sequence[str]]],
) -> list[dict[int, np.ndarray]]:
    """Return the policy's probabilities of given commands, normalised to sum to 1 per turn.

    Args:
        commands: for each trajectory, a dict from turn to two or more distinct commands.

    Returns:
        For each trajectory, a dict from turn to probabilities, float64 [commands].
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
    return [dict(zip(row, part, strict=True)) for row, part in zip(commands, shares, strict=True)]


make = OracleCredit
