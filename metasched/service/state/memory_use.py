"""Memory that was freed is given back to the system, so that a daemon that runs for months stays as large as it is.

The C library keeps what its threads have freed, and so much of it lies between blocks still in use that a daemon would
grow for hours to its largest moment in every thread. glibc can be set otherwise; other C libraries have no such calls.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

#: glibc's parameters (malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD) as ``MALLOC_ARENA_MAX`` and the like
#: set them: arenas at most, and from how many bytes on a block is given back by itself when it is freed.
PARAMETERS = ((-8, 2), (-3, 262_144), (-1, 1_048_576))

#: New objects that are waited for until those among them that nobody can reach are looked for.
YOUNG = 20_000


def keep_little() -> None:
    """Have the C library keep little of what is freed; to be called before threads are started."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in PARAMETERS:
            mallopt(parameter, value)


def give_back() -> None:
    """Give back what lies free between blocks in use; some thousandths of a second."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_for_good() -> None:
    """Never look through what is there now for garbage again: that stops all threads for a tenth of a second.

    Samples and placements live until they are stored, longer than Python waits by itself until it looks for garbage
    among them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
