"""Named random streams: a draw depends on its stream's name, never on earlier draws.

A stream is named by parts such as ("rollout", seed, round, step, task_id, rollout). Two runs that
differ in batch size, worker count or evaluation cadence draw the same numbers for the same names.
"""

import hashlib

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def key(*parts: object) -> int:
    """A 64-bit key of the stream named by `parts` (strings, integers, floats, booleans).

    The parts' types belong to the name: 1 and "1" name two streams.
    """
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def generator(*parts: object) -> np.random.Generator:
    """A NumPy generator at the start of the stream named by `parts`."""
    return np.random.default_rng(key(*parts))


def uniform(keys: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Element `counters[i]` of stream `keys[i]`, float64 [n] in [0, 1).

    The bits are those of SplitMix64 at that position. See Steele, Lea and Flood 2014, "Fast
    Splittable Pseudorandom Number Generators", https://doi.org/10.1145/2660193.2660195.

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
    """First parts of the names of the streams that the rollouts of a training step draw from.

    Args:
        seed: the run's seed.
        round_index: counts from 1.
        step: index of the step in its round.
        stream: the method's key `stream`; arms with equal keys draw from the same streams.
    """
    return ("train", seed, round_index, step, *((stream,) if stream else ()))
