"""How the memory of tensors is managed: in large pages, and kept for the next tensors."""

import ctypes
import os

# Parameters of mallopt(3): https://man7.org/linux/man-pages/man3/mallopt.3.html.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 2**30
# PyTorch reads it at its first allocation of 2 MB or more:
# https://github.com/pytorch/pytorch/pull/107697.
_LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"


def prepare_memory() -> None:
    """Ask for pages of 2 MB, and let the C library keep freed blocks of up to a GiB.

    By default glibc gives large blocks back to the system, and the next tensor of that size has all
    its pages cleared and mapped again. That takes 9 % of the time of ten seeds in one program.
    Large pages save another 5 to 15 %, because a processor finds their addresses faster. Where
    there is no glibc or no such page, nothing happens.
    """
    os.environ.setdefault(_LARGE_PAGES, "1")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _LARGEST)
