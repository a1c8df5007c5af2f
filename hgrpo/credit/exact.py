"""Exact: the advantage of each choice in the environment's own reward, by dynamic programming.

    credit_t = Q_t(a_t) - sum over admissible commands a of pi(a) Q_t(a)
    Q(s, a)  = r(s, a) + V(s'),    V(s) = sum over a of p(a) Q(s, a),    V = 0 after the last turn

r is what the environment pays, so a verdict of 1 or 0 is credited as such. pi(a) is the policy's
probability of command a before turn t, and a_t any reply, admissible or not. p belongs to a
reference policy: to each question of the game it answers as the policy did, on average over the
rollouts of the group. Sums over all futures of a language model are out of reach, because each of
its answers may depend on all earlier ones; those of the reference policy depend on the question
alone. So the credit is the policy's exact advantage if its answers do too and are admissible. Else
it is the exact advantage of this choice by the policy, after which the reference policy plays on.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.command_shares import command_shares
from hgrpo.envs.base import Forkable, TextEnv
from hgrpo.envs.kinds import load
from hgrpo.trajectories.replay import Replay

# Of an environment's state: the question, and what all that follows depends on.
ExactState = Callable[[TextEnv], tuple[Hashable, Hashable]]


class Settings(AlterableSettings):
    """Keys beside `kind: exact`."""

    needs_policy = True
    uses = ("exact_state",)
    demands = {"turn_norm": ("none", "its credit is an advantage already")}


class Values:
    """Expected rewards to go under a reference policy, each state computed once.

    Args:
        state: of one game, from the environment.
        reference: question -> command -> probability; other questions get any command alike.
    """

    def __init__(self, state: ExactState, reference: Mapping[Hashable, Mapping[str, float]]):
        self._state, self._reference = state, reference
        self._known: dict[Hashable, float] = {}

    def of_action(self, env: Forkable, action: str, turns: int) -> float:
        """Q: the reward of the action and the value after it, with `turns` left, this one counted."""
        after = env.fork()
        step = after.step(action)
        return step.env_reward + (0.0 if step.done else self._of_state(after, turns - 1))

    def _of_state(self, env: Forkable, turns: int) -> float:
        if turns == 0:
            return 0.0
        question, rest = self._state(env)
        place = question, rest, turns
        if place not in self._known:
            commands = env.admissible_commands()
            shares = self._reference.get(question, dict.fromkeys(commands, 1 / len(commands)))
            self._known[place] = sum(
                share * self.of_action(env, command, turns) for command, share in shares.items()
            )
        return self._known[place]


class ExactCredit(CreditAssigner):
    """Plays each trajectory again, and computes the values of its states backwards."""

    def __init__(self, settings: Settings, context: Context, state: ExactState):
        self._settings, self._context, self._state = settings, context, state

    def assign(self, group: Group) -> list[np.ndarray]:
        """The exact advantage of each turn, K float64 arrays [T_k], altered by the settings.

        Raises:
            ReplayError: the environment answered differently when a turn was played again.
        """
        collector, trajectories = self._context.collector, group.trajectories
        replays = [Replay(trajectory, collector.make_env) for trajectory in trajectories]
        played = [
            [replay.before(turn)[0] for turn in range(len(t.turns))]
            for replay, t in zip(replays, trajectories, strict=True)
        ]
        commands = [
            {turn: env.admissible_commands() for turn, env in enumerate(envs)} for envs in played
        ]
        shares = command_shares(self._context, trajectories, commands)
        values = Values(self._state, self._mean_shares(played, commands, shares))
        rows = []
        for trajectory, envs, named, known in zip(
            trajectories, played, commands, shares, strict=True
        ):
            row = np.zeros(len(envs))
            for turn, env in enumerate(envs):
                left = collector.turn_cap - turn
                own = values.of_action(env, trajectory.turns[turn].action, left)
                others = [values.of_action(env, command, left) for command in named[turn]]
                # Differences first: exactly 0 where no choice matters.
                row[turn] = known[turn] @ (own - np.array(others))
            rows.append(row)
        return alter(rows, self._settings, group)

    def _mean_shares(
        self,
        played: Sequence[Sequence[TextEnv]],
        commands: Sequence[Mapping[int, Sequence[str]]],
        shares: Sequence[Mapping[int, np.ndarray]],
    ) -> dict[Hashable, dict[str, float]]:
        """The reference policy: question -> command -> mean probability over the group's turns."""
        asked: dict[Hashable, list[tuple[Sequence[str], np.ndarray]]] = {}
        for envs, named, known in zip(played, commands, shares, strict=True):
            for turn, env in enumerate(envs):
                asked.setdefault(self._state(env)[0], []).append((named[turn], known[turn]))
        return {
            question: dict(zip(rows[0][0], np.mean([row for _, row in rows], axis=0), strict=True))
            for question, rows in asked.items()
        }


def make(settings: Settings, context: Context) -> ExactCredit:
    """Make the assigner.

    Raises:
        UserError: the environment does not say what its future depends on.
    """
    return ExactCredit(settings, context, load(context.environment).exact_state)
