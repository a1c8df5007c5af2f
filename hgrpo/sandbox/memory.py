"""Memory that tensors have freed is kept for the next ones."""

import ctypes

# Parameters of mallopt(3): https://man7.org/linux/man-pages/man3/mallopt.3.html.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 2**30


def keep_freed_memory() -> None:
    """Let the C library keep blocks of up to a GiB; where it is not glibc, nothing happens.

    By default glibc gives large blocks back to the system, and the next tensor of that size has all
    its pages cleared and mapped again. That takes 9 % of the time of ten seeds in one program.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _LARGEST)
