"""Random streams identified by name; draws from one stream do not affect other streams.

The name of a stream is a tuple such as ("rollout", seed, round, step, task_id, rollout). Streams of
the same name yield the same numbers, even if two runs differ in batch size, number of workers or
evaluation interval.
"""

import hashlib

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def key(*parts: object) -> int:
    """Return the 64-bit key of the stream with the name `parts` (str, int, float or bool).

    The type of a part matters: 1 and "1" are different names.
    """
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def generator(*parts: object) -> np.random.Generator:
    """Create a NumPy generator at the start of the stream with the name `parts`."""
    return np.random.default_rng(key(*parts))


def uniform(keys: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Return n uniform random numbers from n streams, float64 [n] in [0, 1).

    Entry i is the number at index `counters[i]` of the stream with the key `keys[i]`. The generator
    is SplitMix64. See Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators",
    https://doi.org/10.1145/2660193.2660195.

    Args:
        keys: uint64 [n], from `key`.
        counters: integers [n].
    """
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + (counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX1
        z = (z ^ (z >> np.uint64(27))) * _MIX2
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def training_step(seed: int, round_index: int, step: int, stream: int) -> tuple:
    """Return the name prefix that all rollout streams of a training step share.

    Args:
        seed: the run's seed.
        round_index: counts from 1.
        step: index of the step in its round.
        stream: value of the method's key `stream`. Arms with the same value draw the same numbers.
    """
    return ("train", seed, round_index, step, *((stream,) if stream else ()))
