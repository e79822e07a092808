"""Reads the requests of OpenPBS's qsub, and adds a queue to the command."""

from __future__ import annotations

import getopt
import re
from collections.abc import Sequence

from metasched.schedulers.submission import JobRequest, directives

#: qsub's options, those that are followed by a value with a colon, as getopt(3) takes them.
_OPTIONS = "a:A:c:C:e:fGhIJ:j:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"
#: The variable of a job that holds its mark, whose words are separated by colons: commas separate variables.
VARIABLE = "METASCHED"


def options(words: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """The options of a qsub command with their values, and the place of its script; none where one is not known.

    >>> options(["-q", "new", "-lncpus=4", "-V", "job.sh", "-q", "own"])
    ([('-q', 'new'), ('-l', 'ncpus=4'), ('-V', '')], 4)
    """
    try:
        found, rest = getopt.getopt(list(words), _OPTIONS)
    except getopt.GetoptError:
        return [], 0
    return found, len(words) - len(rest)


def processors(select: str) -> int:
    """The number of processors of a selection of chunks; one if there is no selection.

    >>> processors("2:ncpus=4:mpiprocs=4+ncpus=1"), processors("3"), processors("x:ncpus=many")
    (9, 3, 1)
    """
    total = 0
    for chunk in select.split("+"):
        found = re.match(r"(\d{1,7})(?=$|:)", chunk)
        each = re.search(r"(?:^|:)ncpus=(\d{1,7})(?=$|:)", chunk)
        total += int(found[1] if found else 1) * int(each[1] if each else 1)
    return max(1, total)


def asked_for(words: Sequence[str]) -> JobRequest:
    """The requests of a qsub command, and of the ``#PBS`` lines of its script, which the command overrides.

    >>> asked = asked_for(["-v", "METASCHED=app=cg:n=900", "-l", "select=2:ncpus=2", "-q", "new", "job.sh"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ('new',))
    """
    outside, place = options(words)
    inside, _ = options(directives(words[place], "#PBS")) if place < len(words) else ([], 0)
    mark, count = "", 1
    queues: tuple[str, ...] = ()
    for name, value in (*inside, *outside):
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        if name == "-q":
            queues = (value.partition("@")[0],) if value.partition("@")[0] else ()
        elif name == "-l" and ("select" in parts or "ncpus" in parts):
            count = processors(parts["select"] if "select" in parts else f"ncpus={parts['ncpus']}")
        elif name == "-v" and VARIABLE in parts:
            mark = parts[VARIABLE]
    return JobRequest(comment(mark), count, queues)


def placed(words: Sequence[str], queue: str) -> list[str]:
    """The words with a queue in place of the one that they name.

    >>> placed(["-q", "slow", "-V", "job.sh", "-q", "own"], "fast")
    ['-q', 'fast', '-V', 'job.sh', '-q', 'own']
    """
    found, place = options(words)
    kept = [
        word
        for name, value in found if name != "-q"
        for word in ((name, value) if f"{name[1]}:" in _OPTIONS else (name,))
    ]  # fmt: skip
    # What follows two dashes is a command and no script.
    alone = place > 0 and words[place - 1] == "--" and found[-1:] != [(words[place - 2], "--")]
    return ["-q", queue, *kept, *(["--"] if alone else []), *words[place:]]


def comment(mark: str) -> str:
    """The mark in a job's variable, in the form of a comment; empty if there is none.

    >>> comment("app=cg:n=1400:placement=0f")
    'metasched:app=cg,n=1400,placement=0f'
    """
    return f"metasched:{mark.replace(':', ',')}" if mark else ""
