"""The tasks of an array of jobs, as Slurm and Grid Engine write them."""

from __future__ import annotations

#: Tasks of an array that are counted at most.
MOST_TASKS = 10_000


def task_count(text: str) -> int:
    """How many tasks ``1-5:2,9`` are, no more than :data:`MOST_TASKS`; 1 where it is no such text.

    At the end may stand how many may run at a time, after which no more are counted: the others wait for these.

    >>> task_count("1-5:2,9"), task_count("4-40%3"), task_count("N/A")
    (4, 3, 1)
    """
    ranges, _, together = text.partition("%")
    count = 0
    for part in ranges.split(","):
        low, _, rest = part.partition("-")
        high, _, step = rest.partition(":")
        if all(word.isdecimal() and len(word) < 10 for word in (low, high or low, step or "1")):
            count += (int(high or low) - int(low)) // max(int(step or 1), 1) + 1
    most = int(together) if together.isdecimal() and len(together) < 10 else MOST_TASKS
    return max(min(count, most, MOST_TASKS), 1)
