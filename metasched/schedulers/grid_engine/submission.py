"""Reads the requests of a qsub command, and adds a queue to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from metasched.schedulers.submission import JobRequest, directives

#: qsub's options without a value; -pe is followed by two words, -binding by one or two, all others by one.
_ALONE = frozenset(
    {"-clear", "-cwd", "-h", "-hard", "-help", "-nostdin", "-notify", "-soft", "-terse", "-V", "-verbose", "-verify"}
)
_PLACES = frozenset({"env", "pe", "set"})


def options(words: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The options of a qsub command, each with its place and its values, without the script and what follows it.

    >>> list(options(["-cwd", "-pe", "mpi", "2-16", "job.sh", "-q", "own"]))
    [(0, ('-cwd',)), (1, ('-pe', 'mpi', '2-16'))]
    """
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
        name = words[place]
        count = 1 if name in _ALONE else 3 if name == "-pe" else 2
        if name == "-binding" and words[place + 1 : place + 2] and words[place + 1] in _PLACES:
            count = 3
        yield place, tuple(words[place : place + count])
        place += count


def asked_for(words: Sequence[str]) -> JobRequest:
    """The requests of a qsub command, and of the ``#$`` lines of its script, which the command overrides.

    >>> asked = asked_for(["-ac", "owner=me,metasched=app=cg,n=900", "-pe", "mpi", "4", "-q", "fast,slow", "job.sh"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ('fast', 'slow'))
    """
    outside = list(options(words))
    end = outside[-1][0] + len(outside[-1][1]) if outside else 0
    inside = directives(words[end], "#$") if end < len(words) else []
    queues: list[str] = []
    context, slots = "", "1"
    for each in (inside, words[:end]):
        # Options of the command go over those of the script; within each, queues add up.
        named, soft = [], False
        for _, (name, *values) in options(each):
            if name in ("-soft", "-hard"):
                soft = name == "-soft"
            elif name == "-q" and values and not soft:
                named += [queue for queue in values[0].split(",") if queue]
            elif name == "-ac" and values:
                context = values[0]
            elif name == "-pe" and len(values) == 2:
                slots = values[1]
        queues = named or queues
    least = re.match(r"[0-9]{1,8}", slots)
    return JobRequest(comment(context), max(1, int(least[0])) if least else 1, tuple(queues))


def placed(words: Sequence[str], queue: str) -> list[str]:
    """The words with a queue in place of those that they name.

    >>> placed(["-q", "fast,slow", "-soft", "-q", "slow", "job.sh", "-q", "own"], "fast")
    ['-q', 'fast', '-soft', '-q', 'slow', 'job.sh', '-q', 'own']
    """
    kept: list[str] = []
    end, soft = 0, False
    for place, option in options(words):
        if option[0] in ("-soft", "-hard"):
            soft = option[0] == "-soft"
        if option[0] != "-q" or soft:
            kept += option
        end = place + len(option)
    return ["-q", queue, *kept, *words[end:]]


def comment(context: str) -> str:
    """The mark in a job's context, in the form of a comment; empty if there is none.

    ``qsub -ac metasched=app=cg,n=1400`` makes variables of a context of the words between its commas; those after
    ``metasched`` belong to the mark. The hooks read them in the same way.

    >>> comment("owner=me,metasched=app=cg,n=1400")
    'metasched:app=cg,n=1400'
    """
    found = re.search(r"(?:^|,)metasched=(.*)", context)
    return f"metasched:{found[1]}" if found else ""
