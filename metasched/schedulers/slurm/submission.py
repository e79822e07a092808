"""What is known of a job before it is submitted, from the words of its sbatch command and from its script."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metasched.jobs import Mark, read_mark

#: Script text beyond this is not read (bytes).
MOST_SCRIPT = 65_536


@dataclass(frozen=True, slots=True)
class Asked:
    """What a job asks for: its mark, the number of processors, and the partitions, none where it does not say."""

    mark: Mark | None
    processors: int
    partitions: tuple[str, ...]


def asked_for(words: Sequence[str]) -> Asked:
    """What the words of an sbatch command ask for, and the ``#SBATCH`` lines of its script, over which words go.

    Examples
    --------
    >>> asked = asked_for(["-n", "4", "--comment=metasched:app=cg,n=900", "-pfast,slow", "no-such-script"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ('fast', 'slow'))
    """
    inside = []
    for word in words:
        path = Path(word)
        if not word.startswith("-") and path.is_file():
            with path.open("rb") as script:
                head = script.read(MOST_SCRIPT).decode(errors="replace")
            if head.startswith("#!"):
                for line in head.splitlines():
                    if line.startswith("#SBATCH"):
                        inside += _words(line.removeprefix("#SBATCH"))
                break
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-n", "--ntasks", type=int)
    parser.add_argument("-N", "--nodes", default="1")
    parser.add_argument("--ntasks-per-node", type=int, default=1)
    parser.add_argument("-p", "--partition", default="")
    parser.add_argument("--comment", default="")
    try:
        options, _ = parser.parse_known_args([*inside, *words])
    except argparse.ArgumentError:
        options = parser.parse_args([])
    nodes = options.nodes.partition("-")[0]
    processors = options.ntasks or options.ntasks_per_node * (int(nodes) if nodes.isdecimal() else 1)
    partitions = tuple(name for name in options.partition.split(",") if name)
    return Asked(read_mark(options.comment), max(1, processors), partitions)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []
