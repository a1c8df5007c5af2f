"""How much replies depend on their prompts: mutual information, entropies and retrieval.

A policy may collapse in two ways. Its replies lose their variety: the conditional entropy H(Z|X) is
low. Or they are still varied but no longer depend on the prompt: the mutual information I(X;Z) is
low, and the prompt cannot be inferred from the reply.

All numbers are computed from one matrix, float [n, N]: entry [i, j] is the log-prob, in nats, of
reply z_i under prompt x_j. The n replies were sampled from the policy, each under one of the N
distinct prompts; `columns` [n] are the columns of these prompts.

Formulas: RAGEN-2, https://arxiv.org/abs/2604.06268, and its code,
https://github.com/mll-lab-nu/RAGEN, ragen/trainer/collapse_metrics.py. Two things differ. Identical
prompts are one column, so the bound log N and the chance k / N count distinct prompts. All columns
weigh the same, so where prompts have unequal shares of the replies, I(X;Z) may be too large, by at
most the divergence of these shares from equal ones. And prompts that tie share their hits, so
replies that fit all prompts equally are retrieved at chance.
"""

from collections.abc import Hashable, Sequence

import numpy as np

# Retrieval counts a hit if the own prompt is among the best k, for each of these.
BEST = (1, 2, 4, 8)


def collapse_metrics(
    logprobs: np.ndarray, columns: np.ndarray, tokens: np.ndarray
) -> dict[str, float]:
    """All numbers, per sequence and per token.

    Those per token have names that end in `_per_token`. As in RAGEN, they are the same formulas on
    the mean log-prob of each reply's tokens, so that long replies do not outweigh short ones. They
    are not the numbers per sequence divided by a length: the marginal averages over prompts after
    the division.

    Args:
        logprobs: float64 [n, N].
        columns: integers [n].
        tokens: integers [n], the number of tokens of each reply.

    Returns:
        `pairs` n, `prompts` N, `tokens` (their mean), `information_bound` log N, and in nats, as
        means over replies, `matched`, `marginal`, `mutual_information` I(X;Z),
        `conditional_entropy` H(Z|X) and `entropy` H(Z). Also `retrieval_at_<k>` and
        `chance_at_<k>`, the shares from `retrieval` and `chance`, for k in `BEST`.
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

    I(X;Z) = matched - marginal is at most log N. It estimates a number of at least 0 and may be
    below 0 by chance. H(Z|X) = -matched, and H(Z) = -marginal.
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
    """Log of each row's mean probability over the N prompts, float [n], in nats."""
    # The largest term is taken out, so that no exponential overflows and at least one is 1.
    largest = logprobs.max(axis=1)
    shares = np.exp(logprobs - largest[:, None]).sum(axis=1)
    return largest + np.log(shares) - np.log(logprobs.shape[1])


def retrieval(logprobs: np.ndarray, columns: np.ndarray, best: int) -> float:
    """Share of the replies whose own prompt is among the `best` under which they are likeliest.

    If prompts tie at the last of these places, the reply counts as the chance that its own prompt
    is drawn among them.
    """
    fit = matched(logprobs, columns)[:, None]
    better, equal = (logprobs > fit).sum(axis=1), (logprobs == fit).sum(axis=1)
    return float(np.clip((best - better) / equal, 0.0, 1.0).mean())


def chance(prompts: int, best: int) -> float:
    """`retrieval` of replies that do not depend on their prompts: k of N, at most 1."""
    return min(1.0, best / prompts)


def distinct(items: Sequence[Hashable]) -> tuple[list[Hashable], np.ndarray]:
    """The distinct items in order of first occurrence, and each item's index there, int [n]."""
    indices: dict[Hashable, int] = {}
    columns = [indices.setdefault(item, len(indices)) for item in items]
    return list(indices), np.array(columns, dtype=int)
