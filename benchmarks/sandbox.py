"""Measure the speed of the sandbox: stacked seeds, sampling, and the computation of log-probs.

Each comparison runs a fast and a slow method alternately, and its ratio is the median over pairs of
runs. On a CPU, times are process time on one thread. On a GPU, times are wall time, with a
synchronization before and after the work. The benchmark prints one line of JSON with these
comparisons:

- stacked: one run of ten seeds, compared with ten runs of one seed. All runs are evaluated every 20
  steps. The task `bandit` is the bandit on digits, but with the same number of random 8 x 8 images
  in place of the dataset. `tokens` is token_reversal with 4 tokens and batches of 8. `tokens_96` is
  token_reversal with 6 tokens and batches of 96.
- products: only the matrix products in the forward and backward pass of `tokens_96`, for ten seeds
  and for one seed. The ratio of their rates is an upper bound on the speed-up from stacking.
- sampling: sampling with cached keys and values, compared with encoding the whole prefix for each
  token.
- candidates: the log-probs of eight candidate tokens after every prefix, and their gradient. One
  pass over the rollouts is compared with one pass per prefix length, where prefixes are padded to
  the full length.
- listed: the log-probs of all outputs of 5 tokens for 16 prompts, and their gradient. One tree per
  prompt is compared with one sequence per output.

Examples:
    python benchmarks/sandbox.py
    python benchmarks/sandbox.py --device cuda
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from hgrpo.sandbox import draws
from hgrpo.sandbox.command_line import prepare_torch
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.policies import SequencePolicy, taken
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.train import Trainer

SEEDS, PAIRS = tuple(range(10)), 3
ROWS, HORIZON, CANDIDATES, PROMPTS, LISTED = 96, 10, 8, 16, 5
# Minimum ratio required of each comparison.
STACKED, CACHED, AT_ONCE, TREE = 2.5, 3, 5, 3
# Largest allowed difference between two log-probs of the same token.
CLOSE = 1e-5
TOKENS = {"task": "token_reversal", "allow_degenerate": True, "seeds": SEEDS}


def main() -> None:
    """Run all comparisons and print their numbers as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    prepare_torch(parser.parse_args().device)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        data = _pictures(Path(folder) / "pictures.npz")
        runs = {
            "bandit": RlSettings(data=str(data), num_steps=100, seeds=SEEDS),
            "tokens": RlSettings(**TOKENS, num_steps=100, batch_size=8, seq_len=4),
            "tokens_96": RlSettings(**TOKENS, num_steps=40, batch_size=96, seq_len=6),
        }
        stacked = {name: _stacked(run) for name, run in runs.items()}
    parts = {
        "stacked": stacked,
        "products": _products(),
        "sampling": _sampling(),
        "candidates": _candidates(),
        "listed": _listed(),
    }
    print(json.dumps(parts))


def rows(numbers: dict) -> list[str]:
    """Table rows for the benchmarks page. `numbers` is the output of `main`."""
    runs = {
        "bandit": "the bandit of digits, 100 batches of 100",
        "tokens": "token_reversal of 4 tokens, 100 batches of 8",
        "tokens_96": "token_reversal of 6 tokens, 40 batches of 96",
    }
    stacked = [
        _row(f"ten seeds of {what}", "ten runs of one seed", numbers["stacked"][name], STACKED)
        for name, what in runs.items()
    ]
    sampling, candidates, listed = numbers["sampling"], numbers["candidates"], numbers["listed"]
    products = numbers["products"]
    return [
        *stacked,
        "| sandbox, matrix products of token_reversal of 6 tokens, batches of 96, one thread, ten "
        f"seeds | one seed | {products['ten']:.0f} GFLOP/s against {products['one']:.0f} | - |",
        _row(
            f"{ROWS} outputs of {HORIZON} tokens with cached keys and values",
            f"encoding each prefix; {sampling['same_tokens']:.1%} of the tokens are identical",
            sampling,
            CACHED,
            same=sampling["same_tokens"] == 1,
        ),
        _row(
            f"{CANDIDATES} candidates at each of their prefixes in one pass, with the gradient",
            f"one padded pass for each of the {HORIZON} prefixes; log-probs differ by at most "
            f"{candidates['largest_difference']:.0e}",
            candidates,
            AT_ONCE,
            same=candidates["largest_difference"] <= CLOSE,
        ),
        _row(
            f"all {3**LISTED} outputs of {LISTED} tokens for {PROMPTS} prompts as trees, with the "
            "gradient",
            "a sequence for each output; log-probs differ by at most "
            f"{listed['largest_difference']:.0e}",
            listed,
            TREE,
            same=listed["largest_difference"] <= CLOSE,
        ),
    ]


def _row(what: str, against: str, side: dict[str, float], least: float, same: bool = True) -> str:
    """A table row for the benchmarks page.

    The target is marked as missed if the ratio is below `least`, or if `same` is False, which means
    that the results of the two methods differ.
    """
    missed = "" if side["ratio"] >= least and same else ": **missed**"
    return (
        f"| sandbox, {what} | {against} | {side['ours_s']:.3f} s against {side['theirs_s']:.3f} s: "
        f"**{side['ratio']:.1f}x** ({side['low']:.1f} to {side['high']:.1f}) | "
        f"at least {least:g}x{missed} |"
    )


def _seconds(work: Callable[[], object]) -> float:
    if torch.get_default_device().type == "cpu":
        began = time.process_time()
        work()
        return time.process_time() - began
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def _compare(ours: Callable[[], object], theirs: Callable[[], object]) -> dict[str, float]:
    """Time the two functions in pairs of runs.

    Returns the median seconds of each function, and the smallest, median and largest ratio of
    the times in a pair.
    """
    ours(), theirs()
    pairs = []
    for number in range(PAIRS):
        # The two functions take turns at running first, so that a gradual slowdown of the
        # machine favours neither of them.
        if number % 2:
            slow, fast = _seconds(theirs), _seconds(ours)
        else:
            fast, slow = _seconds(ours), _seconds(theirs)
        pairs.append((fast, slow))
    ratios = sorted(slow / fast for fast, slow in pairs)
    return {
        "ours_s": round(median(fast for fast, _ in pairs), 4),
        "theirs_s": round(median(slow for _, slow in pairs), 4),
        "ratio": round(median(ratios), 2),
        "low": round(ratios[0], 2),
        "high": round(ratios[-1], 2),
    }


def _stacked(run: RlSettings) -> dict[str, float]:
    alone = [RlSettings(**run.model_dump() | {"seeds": (seed,)}) for seed in run.seeds]
    return _compare(lambda: Trainer(run).run(), lambda: [Trainer(each).run() for each in alone])


def _products() -> dict[str, float]:
    """GFLOP/s of the matrix products in the forward and backward pass, for one seed and for ten."""
    net = Transformer(3, 13)
    width = net.width
    layers = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    numbers = {}
    for name, seeds in (("one", 1), ("ten", len(SEEDS))):
        arguments = []
        for inputs, outputs in layers:
            x, grad = (torch.randn(seeds, ROWS * net.length, size) for size in (inputs, outputs))
            arguments.append((x, torch.randn(seeds, inputs, outputs), grad))

        def multiply(arguments: list[tuple[Tensor, ...]] = arguments) -> None:
            for x, matrix, grad in arguments:
                torch.bmm(x, matrix)
                torch.bmm(grad, matrix.mT)
                torch.bmm(x.mT, grad)

        multiply()
        count = sum(3 * 2 * x.shape[1] * matrix.numel() for x, matrix, _ in arguments)
        numbers[name] = count / min(_seconds(multiply) for _ in range(20)) / 1e9
    return numbers


def _sequences() -> tuple[SequencePolicy, Tensor, Tensor, Tensor]:
    """Return a policy with default settings, and weights, prompts and random numbers for it."""
    policy = SequencePolicy(Transformer(3, 2 * HORIZON + 1), HORIZON)
    prompts = draws.integers((0,), "data", (0,), (ROWS, HORIZON + 1), 3)
    uniform = draws.uniform((0,), "action", (0,), (ROWS, 1, 1, HORIZON))
    return policy, policy.init((0,)), prompts, uniform


def _sampling() -> dict[str, float]:
    policy, weights, prompts, uniform = _sequences()

    @torch.no_grad()
    def anew() -> Tensor:
        tokens = prompts
        for step in range(HORIZON):
            logits = policy.net.logits(weights, tokens)[..., -1, :]
            action = draws.pick(logits.log_softmax(-1), uniform[:, :, 0, 0, step])
            tokens = torch.cat([tokens, action.unsqueeze(-1)], -1)
        return tokens[..., -HORIZON:]

    cached = policy.sample(weights, prompts, uniform).actions[:, :, 0, 0]
    same = (cached == anew()).float().mean().item()
    numbers = _compare(lambda: policy.sample(weights, prompts, uniform), anew)
    return numbers | {"same_tokens": same}


def _candidates() -> dict[str, float]:
    policy, weights, prompts, uniform = _sequences()
    sampled = policy.sample(weights, prompts, uniform)
    shape = (ROWS, 1, 1, HORIZON, CANDIDATES)
    chosen = draws.integers((0,), "candidate", (0,), shape, 3)
    weights = weights.requires_grad_()

    def at_once() -> Tensor:
        return policy.table(weights, prompts, sampled.actions).gather(-1, chosen)[0, :, 0, 0]

    def prefix_by_prefix() -> Tensor:
        whole = torch.cat([prompts, sampled.actions[:, :, 0, 0]], -1)[..., :-1]
        states = whole.unsqueeze(2).repeat(1, 1, HORIZON, 1)
        for step in range(HORIZON):
            states[:, :, step, HORIZON + 1 + step :] = 0
        logits = policy.net.logits(weights, states.flatten(1, 2)).log_softmax(-1)
        table = logits.unflatten(1, (ROWS, HORIZON))
        last = torch.stack([table[0, :, step, HORIZON + step] for step in range(HORIZON)], 1)
        return last.gather(-1, chosen[0, :, 0, 0])

    return _compare_scores(weights, at_once, prefix_by_prefix)


def _listed() -> dict[str, float]:
    policy = SequencePolicy(Transformer(3, 2 * LISTED + 1), LISTED)
    weights = policy.init((0,)).requires_grad_()
    prompts = draws.integers((0,), "data", (0,), (PROMPTS, LISTED + 1), 3)
    outputs = policy.listed(weights, prompts).actions
    return _compare_scores(
        weights,
        lambda: policy.listed(weights, prompts).logprobs,
        lambda: taken(policy.table(weights, prompts, outputs), outputs),
    )


def _compare_scores(
    weights: Tensor, ours: Callable[[], Tensor], theirs: Callable[[], Tensor]
) -> dict[str, float]:
    """Compare two log-prob functions: their speed with gradients, and the values they return."""

    def differentiated(score: Callable[[], Tensor]) -> Callable[[], Tensor]:
        return lambda: torch.autograd.grad(score().sum(), weights)[0]

    apart = (ours() - theirs()).abs().max().item()
    numbers = _compare(differentiated(ours), differentiated(theirs))
    return numbers | {"largest_difference": apart}


def _pictures(path: Path) -> Path:
    """Random images, as many as in scikit-learn's digits dataset."""
    numbers = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 1437), ("test", 360)):
        arrays[f"x_{part}"] = numbers.integers(0, 256, (count, 64), dtype=np.uint8)
        arrays[f"y_{part}"] = numbers.integers(0, 10, count)
    np.savez(path, **arrays)
    return path


if __name__ == "__main__":
    main()
