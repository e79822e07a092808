"""Reads the requests of condor_submit, and adds a partition to the command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from metasched.schedulers.htcondor.listing import MARK, PARTITION, comment
from metasched.schedulers.submission import JobRequest, lines_of

#: Options that stand alone; all others are followed by a value.
_ALONE = frozenset(
    {"-debug", "-disable", "-dry-run", "-help", "-interactive", "-i", "-single-cluster", "-spool", "-s", "-stm",
     "-terse", "-unused", "-verbose", "-v", "-allow-crlf-script", "-force-mpi-universe", "-use-jobset"}
)  # fmt: skip
_LINE = re.compile(r"\s*(?:\+|[Mm][Yy]\.)?(\w{1,100})\s*=\s*(.{0,2000})")


def asked_for(words: Sequence[str]) -> JobRequest:
    """The requests of a condor_submit command, and of its description, which the command overrides.

    >>> asked = asked_for(["-append", '+Metasched = "app=cg,n=900"', "request_cpus=4", "no-such-description"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ())
    """
    given: list[str] = []
    file, place = "", 0
    while place < len(words):
        word = words[place]
        if word.startswith("-") and word != "-":
            if word in ("-append", "-a"):
                given += words[place + 1 : place + 2]
            place += 1 if word in _ALONE else 2
            continue
        if "=" in word:
            given.append(word)
        else:
            file = word
        place += 1
    said = _values([*(lines_of(file) if file else []), *given])
    cpus, partition = said.get("request_cpus", "1"), said.get(PARTITION.lower(), "")
    processors = int(cpus) if re.fullmatch(r"[1-9]\d{0,7}", cpus) else 1
    return JobRequest(comment(said.get(MARK.lower())), processors, (partition,) if partition else ())


def _values(lines: Iterable[str]) -> dict[str, str]:
    """The values that lines set, by name in lower case; strings without their quotes."""
    found = (_LINE.match(line) for line in lines)
    return {each[1].lower(): each[2].strip().strip('"') for each in found if each}


def placed(words: Sequence[str], partition: str) -> list[str]:
    """The words with a partition, which the job transform of `deploy/htcondor/metasched.conf` makes a requirement.

    >>> placed(["job.sub"], "fast")
    ['-append', '+MetaschedPartition = "fast"', 'job.sub']
    """
    return ["-append", f'+{PARTITION} = "{partition}"', *words]
