"""Measures how much replies depend on prompts: mutual information, entropies and retrieval.

A policy may collapse in two ways. First, its replies may become similar. The conditional entropy
H(Z|X) is then low. Second, its replies may differ, but no longer depend on the prompt. The mutual
information I(X;Z) is then low, and the prompt cannot be inferred from the reply.

Each of a step's n replies was sampled under one of N distinct prompts. Before the update, the
policy scores each reply under each prompt by teacher forcing. All metrics are computed from the
resulting matrix, float [n, N]. Entry [i, j] is the log-prob of reply z_i under prompt x_j, in nats.
`columns` [n] contains the column of each reply's own prompt.

The formulas follow RAGEN-2, https://arxiv.org/abs/2604.06268, and its code,
https://github.com/mll-lab-nu/RAGEN, ragen/trainer/collapse_metrics.py, with three differences:

- Identical prompts share a column, so the N in log N and k / N counts distinct prompts.
- All columns have the same weight. With unequal numbers of replies per prompt, I(X;Z) may be
  overestimated by at most the KL divergence of the prompt distribution from uniform.
- Ties count as if broken at random, so a reply that fits all prompts equally counts as k / N.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hgrpo.agent.conversation import Replies
from hgrpo.agent.thought import find_thought
from hgrpo.games.streams import generator, key
from hgrpo.learning.batch import SampledSequence
from hgrpo.trajectories.log_row import ANY, FIRST, as_row
from hgrpo.trajectories.trajectory import Trajectory, Turn

# Values of k for top-k retrieval.
BEST = (1, 2, 4, 8)


def collapse_metrics(
    logprobs: np.ndarray, columns: np.ndarray, tokens: np.ndarray
) -> dict[str, float]:
    """Compute all metrics, per sequence and per token.

    Metrics per token have the suffix `_per_token`. As in RAGEN, they are computed with the same
    formulas from the mean log-prob per token of each reply, so that long replies do not outweigh
    short replies. Dividing the metrics per sequence by a length would give other values, because
    the marginal is nonlinear.

    Args:
        logprobs: float64 [n, N].
        columns: integers [n].
        tokens: integers [n], the number of tokens of each reply.

    Returns:
        - `pairs` (n), `prompts` (N), `tokens` (mean per reply) and `information_bound` (log N)
        - means over replies in nats: `matched`, `marginal`, `mutual_information` I(X;Z),
          `conditional_entropy` H(Z|X) and `entropy` H(Z)
        - for each k in `BEST`: `retrieval_at_<k>` (see `retrieval`), `chance_at_<k>` (see `chance`)
    """
    prompts = logprobs.shape[1]
    per_token = information(logprobs / tokens[:, None], columns)
    return {
        "pairs": len(columns),
        "prompts": prompts,
        "tokens": float(tokens.mean()),
        "information_bound": float(np.log(prompts)),
        **information(logprobs, columns),
        **{f"{name}_per_token": value for name, value in per_token.items()},
        **{f"retrieval_at_{best}": retrieval(logprobs, columns, best) for best in BEST},
        **{f"chance_at_{best}": chance(prompts, best) for best in BEST},
    }


def information(logprobs: np.ndarray, columns: np.ndarray) -> dict[str, float]:
    """Mutual information and entropies from a matrix [n, N], in nats, as means over its rows.

    I(X;Z) = matched - marginal is at most log N. The true value is at least 0, but the estimate may
    be negative. H(Z|X) = -matched, and H(Z) = -marginal.
    """
    fit, everywhere = matched(logprobs, columns), marginal(logprobs)
    return {
        "matched": float(fit.mean()),
        "marginal": float(everywhere.mean()),
        "mutual_information": float((fit - everywhere).mean()),
        "conditional_entropy": -float(fit.mean()),
        "entropy": -float(everywhere.mean()),
    }


def matched(logprobs: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Log-prob of each reply under its own prompt, float [n], in nats."""
    return logprobs[np.arange(len(columns)), columns]


def marginal(logprobs: np.ndarray) -> np.ndarray:
    """Log of the mean probability of each reply over the N prompts, float [n], in nats."""
    # Subtract the largest term so that exponentials do not overflow.
    largest = logprobs.max(axis=1)
    shares = np.exp(logprobs - largest[:, None]).sum(axis=1)
    return largest + np.log(shares) - np.log(logprobs.shape[1])


def retrieval(logprobs: np.ndarray, columns: np.ndarray, best: int) -> float:
    """Fraction of replies whose own prompt is among the first `best` of all prompts.

    For each reply, prompts are ranked by the reply's log-prob under them. With ties, this is the
    expected fraction if ties are broken at random.
    """
    fit = matched(logprobs, columns)[:, None]
    better, equal = (logprobs > fit).sum(axis=1), (logprobs == fit).sum(axis=1)
    return float(np.clip((best - better) / equal, 0.0, 1.0).mean())


def chance(prompts: int, best: int) -> float:
    """Expected `retrieval` of replies that do not depend on their prompts: k / N, at most 1."""
    return min(1.0, best / prompts)


def distinct(items: Sequence[Hashable]) -> tuple[list[Hashable], np.ndarray]:
    """Distinct items in order of first occurrence, and each item's index among them, int [n]."""
    indices: dict[Hashable, int] = {}
    columns = [indices.setdefault(item, len(indices)) for item in items]
    return list(indices), np.array(columns, dtype=int)


@dataclass(frozen=True)
class Pair:
    """A prompt x and its reply, as tokens.

    Attributes:
        prompt: the whole conversation before the reply.
        lead: the reply's tokens before z, such as the opening tag of a thought. They are not
            scored, but z is conditioned on them.
        z: the scored tokens: the thought without its tags, or the whole reply.
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
    """Collapse metrics of a step as log entries, for first turns and for random turns.

    Args:
        trajectories: all trajectories of the step.
        number: number of trajectories to draw without replacement.
        stream: prefix of the names of the random streams.
        longest: maximum number of tokens of a conversation.
        score: computes log-probs of the sampled tokens of each sequence.
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
    """Draw at most `number` trajectories without replacement.

    The draw depends on the trajectories' tasks and rollout numbers, not on their order.
    """

    def place(trajectory: Trajectory) -> int:
        return key("collapse", *stream, trajectory.task.task_id, trajectory.rollout)

    return sorted(trajectories, key=place)[:number]


def draw_turn(trajectory: Trajectory, stream: tuple) -> Turn:
    """Draw one of the trajectory's turns uniformly."""
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
    """Compute `collapse_metrics`, and count omitted pairs (`left_out`) and thoughts (`thoughts`).

    Every reply is scored under every prompt. A pair is therefore omitted if its prompt, followed by
    the longest of all replies, has more than `longest` tokens. If no pairs remain, `pairs` is 0 and
    there are no metrics.
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
    # Score each distinct reply only once, because many replies are the same command.
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
