"""Reads the requests of ``flux submit`` and ``flux batch``, and adds a queue to the command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from metasched.schedulers.submission import JobRequest

#: The attribute of a job that holds its mark.
ATTRIBUTE = "user.metasched"
#: Options that stand alone; all others are followed by a value, behind a ``=`` or in the next word.
_ALONE = frozenset(
    {"-x", "--exclusive", "-v", "--verbose", "--quiet", "--dry-run", "--debug", "-l", "--label-io", "-u",
     "--unbuffered", "--wait", "--watch", "--progress", "--jps", "--recursive", "--wrap"}
)  # fmt: skip


def script_at(words: Sequence[str]) -> int:
    """The place of the command or script, after the subcommand and its options.

    >>> script_at(["submit", "-n", "4", "--queue=fast", "-x", "cg", "-n", "9"])
    5
    """
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        word = words[place]
        joined = "=" in word if word.startswith("--") else len(word) > 2
        place += 1 if joined or word in _ALONE else 2
    return min(place, len(words))


def asked_for(words: Sequence[str]) -> JobRequest:
    """What the words ask for.

    >>> asked = asked_for(["submit", "-n4", "--setattr=user.metasched=app=cg,n=900", "-q", "fast", "cg", "-n", "9"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ('fast',))
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-n", "--ntasks", type=int, default=1)
    parser.add_argument("-q", "--queue", default="")
    parser.add_argument("--setattr", action="append", default=[])
    try:
        options, _ = parser.parse_known_args(words[1 : script_at(words)])
    except argparse.ArgumentError:
        options = parser.parse_args([])
    marks = [each.partition("=")[2] for each in options.setattr if each.startswith(f"{ATTRIBUTE}=")]
    return JobRequest(
        f"metasched:{marks[-1]}" if marks else "", max(1, options.ntasks), (options.queue,) if options.queue else ()
    )


def placed(words: Sequence[str], queue: str) -> list[str]:
    """The words with a queue, which is the last option and so overrides another one.

    >>> placed(["submit", "-q", "slow", "cg"], "fast")
    ['submit', '-q', 'slow', '--queue=fast', 'cg']
    """
    place = script_at(words)
    return [*words[:place], f"--queue={queue}", *words[place:]]
