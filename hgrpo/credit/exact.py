"""Exact advantage of each action, computed from the environment's rewards by dynamic programming.

    credit_t = Q_t(a_t) - sum over admissible commands a of pi(a) Q_t(a)
    Q(s, a)  = r(s, a) + V(s'),    V(s) = sum over a of p(a) Q(s, a),    V = 0 after the last turn

r is the environment's reward. a_t is the reply, which may be inadmissible. pi(a) is the policy's
probability of command a before turn t. p is the probability under a reference policy, which is used
after turn t. For each question of the game, the reference policy's probabilities are those of the
policy, averaged over the group's turns with this question.

A reference policy is needed because the values of a language model cannot be computed by dynamic
programming: its answer may depend on all earlier answers. If the policy's answers are admissible
and depend only on the question, the credit is the policy's exact advantage. Otherwise, it is the
exact advantage of following the policy for one turn and the reference policy afterwards.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping

import numpy as np

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.oracle import command_shares
from hgrpo.games.base import Forkable, TextEnv
from hgrpo.games.kinds import load
from hgrpo.trajectories.replay import Replay

# Maps an environment to its current question and the facts that determine later rewards.
ExactState = Callable[[TextEnv], tuple[Hashable, Hashable]]


class Settings(AlterableSettings):
    """Keys beside `kind: exact`."""

    needs_policy = True
    uses = ("exact_state",)
    demands = {"turn_norm": ("none", "its credit is already an advantage")}


class Values:
    """Expected rewards-to-go in one game under the reference policy, cached by state.

    Args:
        state: the environment's `exact_state`.
        reference: maps a question to the probability of each admissible command, float64
            [commands]. If a question is missing, its commands are equally likely.
    """

    def __init__(self, state: ExactState, reference: Mapping[Hashable, np.ndarray]):
        self._state, self._reference = state, reference
        self._known: dict[Hashable, float] = {}

    def of_action(self, env: Forkable, action: str, turns: int) -> float:
        """Return Q of an action; `turns` is the number of turns left, including this one."""
        after = env.fork()
        step = after.step(action)
        ends = step.done or turns == 1
        return step.env_reward + (0.0 if ends else self._of_state(after, turns - 1))

    def of_commands(self, env: Forkable, turns: int) -> np.ndarray:
        """Return Q of every admissible command, float64 [commands]."""
        return np.array([self.of_action(env, a, turns) for a in env.admissible_commands()])

    def _of_state(self, env: Forkable, turns: int) -> float:
        question, rest = self._state(env)
        place = question, rest, turns
        if place not in self._known:
            values = self.of_commands(env, turns)
            shares = self._reference.get(question, np.full(len(values), 1 / len(values)))
            self._known[place] = float(shares @ values)
        return self._known[place]


class ExactCredit(CreditAssigner):
    """Replays each trajectory and computes the values of its states recursively.

    Raises:
        UserError: the environment has no `exact_state`.
    """

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        self._state = load(context.environment).exact_state

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return the exact advantage of each turn, after `alter`, as K float64 arrays [T_k].

        Raises:
            ReplayError: the environment answered differently when a turn was replayed.
        """
        collector, played = self.context.collector, []
        for trajectory in group.trajectories:
            replay = Replay(trajectory, collector.make_env)
            played.append([replay.before(turn)[0] for turn in range(len(trajectory.turns))])
        commands = [{t: env.admissible_commands() for t, env in enumerate(row)} for row in played]
        shares = command_shares(self.context, group.trajectories, commands)
        answers = defaultdict(list)
        for envs, known in zip(played, shares, strict=True):
            for turn, env in enumerate(envs):
                answers[self._state(env)[0]].append(known[turn])
        mean = {question: np.mean(rows, axis=0) for question, rows in answers.items()}
        values, rows = Values(self._state, mean), []
        for trajectory, envs, known in zip(group.trajectories, played, shares, strict=True):
            row = np.zeros(len(envs))
            for turn, env in enumerate(envs):
                left = collector.turn_cap - turn
                taken = values.of_action(env, trajectory.turns[turn].action, left)
                # Use the mean of the differences, which is exactly 0 if all values are equal.
                row[turn] = known[turn] @ (taken - values.of_commands(env, left))
            rows.append(row)
        return alter(rows, self.settings, group)


make = ExactCredit
