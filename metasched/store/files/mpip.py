"""Reads application profiles from the text reports of mpiP, the light-weight MPI profiler.

Three sections are used: MPI Time for processes, execution and waiting time; Callsite Message Sent statistics for sends
and sizes; Callsite Time statistics for how often a process waits. A collective call counts as the messages that a
process sends in the usual algorithm for it. mpiP does not record which processes exchange messages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from metasched.predictors.analytic.cloud.profile import Profile
from metasched.records import InputError
from metasched.store.files.cloud import ProfiledRun
from metasched.store.files.whole_files import read_text
from metasched.validation import Located

_TIMES, _SENT, _CALLS = "MPI Time", "Callsite Message Sent statistics", "Callsite Time statistics"
_HEADING = re.compile(r"^@---\s*(?P<title>[^-]+?)\s*(?:\(.*\))?(?::\s*\d+)?\s*-*\s*$")
#: Collective calls in which a process sends to every other, and those that go along a tree or a butterfly.
_TO_ALL = {"Alltoall", "Alltoallv", "Alltoallw", "Ialltoall", "Ialltoallv", "Allgather", "Allgatherv", "Scatterv"}
_ALONG_TREE = {"Allreduce", "Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Reduce_scatter", "Scan", "Iallreduce"}
#: Calls that send or start something without waiting for it.
_NOT_WAITING = {"Isend", "Irecv", "Ibsend", "Issend", "Irsend", "Start", "Startall", "Test", "Testall", "Iprobe"}


def read_mpip(path: Path) -> ProfiledRun:
    """Read one report; InputError with file, row and what was expected."""
    text = read_text(path)
    if not text.lstrip().startswith("@ mpiP"):
        raise InputError("does not start with '@ mpiP', expected a report of mpiP", where=str(path))
    sections = dict(_sections(text))
    for title in (_TIMES, _SENT, _CALLS):
        if title not in sections:
            raise InputError(f"section '{title}' is missing", where=str(path))
    times = [_numbers(row[1:3], path, line) for line, row in sections[_TIMES] if row[0].isdigit()]
    if len(times) < 2:
        raise InputError(f"section '{_TIMES}' has {len(times)} tasks, expected at least 2", where=str(path))
    processes = len(times)
    messages, volume = 0.0, 0.0
    for line, row in sections[_SENT]:
        if len(row) == 8 and row[2].isdigit():
            count, mean = _numbers((row[3], row[5]), path, line)
            sent = count * _messages(row[0], processes)
            messages, volume = messages + sent, volume + sent * mean
    if volume == 0:
        raise InputError(f"section '{_SENT}' has no message of any process", where=str(path))
    waits: Counter[str] = Counter()
    for line, row in sections[_CALLS]:
        if len(row) == 9 and row[2].isdigit() and row[0] not in _NOT_WAITING:
            waits[row[2]] += int(_numbers((row[3],), path, line)[0])
    with Located(str(path)):
        profile = Profile(
            processes,
            sends=messages / processes,
            message_size=volume / messages,
            waiting_time=math.fsum(waiting for _, waiting in times) / processes,
            execution_time=max(application for application, _ in times),
            exchanges=float(max(waits.values())) if waits else None,
        )
    return ProfiledRun(profile)


def _sections(text: str) -> Iterator[tuple[str, list[tuple[int, list[str]]]]]:
    """Titles and their rows, each with its line number; rules and blank lines left out."""
    title: str = ""
    rows: list[tuple[int, list[str]]] = []
    for line, content in enumerate(text.splitlines(), start=1):
        heading = _HEADING.match(content)
        if heading:
            yield title, rows
            title, rows = heading["title"], []
        elif content.strip() and not content.startswith(("@", "---")):
            rows.append((line, content.split()))
    yield title, rows


def _messages(call: str, processes: int) -> float:
    if call in _TO_ALL:
        return processes - 1.0
    return math.log2(processes) if call in _ALONG_TREE else 1.0


def _numbers(words: list[str] | tuple[str, ...], path: Path, line: int) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise InputError(f"{' '.join(words)!r}, expected numbers", where=f"{path}, row {line}") from None
    if not all(0 <= value < math.inf for value in values):
        raise InputError(f"{' '.join(words)!r}, expected numbers of at least 0", where=f"{path}, row {line}")
    return values
