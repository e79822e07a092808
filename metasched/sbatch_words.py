"""The words of an sbatch command: its options, its script, and what follows that."""

from __future__ import annotations

from collections.abc import Sequence

#: sbatch's short options that are followed by a value, in the same word or in the next.
_SHORT = frozenset("AaBbCcDdeFGiJLMmNnopqStwx")
#: Its long options without a value, or with one only after ``=``; all others are followed by a value.
_ALONE = frozenset(
    {"contiguous", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "nice", "no-kill", "no-requeue",
     "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot", "requeue", "spread-job", "test-only",
     "usage", "use-min-nodes", "verbose", "version", "wait"}
)  # fmt: skip


def script_at(words: Sequence[str]) -> int:
    """The position of the script among the words of an sbatch command; their number if there is no script.

    What follows it belongs to the script.

    >>> script_at(["-n", "4", "--comment", "metasched:app=cg,n=900", "-Nmine", "job.sh", "-n", "9"])
    5
    >>> script_at(["--wrap=true"])
    1
    """
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            return place + 1
        if not word.startswith("-") or word == "-":
            return place
        name, equals, _ = word.lstrip("-").partition("=")
        if word.startswith("--"):
            place += 1 if equals or name in _ALONE else 2
        else:
            # Letters that stand alone may be joined: the first that takes a value takes the rest of the word.
            valued = next((at for at, letter in enumerate(word[1:]) if letter in _SHORT), None)
            place += 2 if valued is not None and valued == len(word) - 2 else 1
    return len(words)
