"""Reads the requests of ``oarsub``, and adds a partition to the command."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from metasched.schedulers.oar.listing import comment, partitions_in
from metasched.schedulers.submission import JobRequest

#: Options that stand alone; all others are followed by a value, behind a ``=`` or in the next word.
_ALONE = frozenset(
    {"-I", "--interactive", "-S", "--scanscript", "-k", "--use-job-key", "--hold", "-D", "--dumper", "-X", "--xml",
     "-Y", "--yaml", "-J", "--json", "-h", "--help", "-V", "--version"}
)  # fmt: skip
#: The short and the long names of options.
_LONG = {"-l": "--resource", "-p": "--property"}


def options(words: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """The options with their values, and the place of the command behind them.

    >>> options(["-l", "core=4", "--property=cluster='new'", "-S", "./cg.sh", "-l"])
    ([('--resource', 'core=4'), ('--property', "cluster='new'"), ('-S', '')], 4)
    """
    found, place = [], 0
    while place < len(words) and words[place].startswith("-") and len(words[place]) > 1:
        word = words[place]
        name, joined, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        place += 1
        if name not in _ALONE and not joined:
            value = words[place] if place < len(words) else ""
            place += 1
        found.append((_LONG.get(name, name), value))
    return found, min(place, len(words))


def asked_for(words: Sequence[str], attribute: str) -> JobRequest:
    """What the words ask for.

    Parameters
    ----------
    words : of oarsub.
    attribute : the property that tells partitions apart, empty where none does.

    Examples
    --------
    >>> words = ["-l", "nodes=2/core=3,walltime=1:0:0", "-p", "cluster='new'", "METASCHED=app=cg,n=900 ./cg.sh"]
    >>> asked = asked_for(words, "cluster")
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 6, ('new',))
    """
    given, place = options(words)
    values = dict(given)
    hierarchy = re.sub(r"\{[^{}]*\}", "", values.get("--resource", "")).partition(",")[0]
    numbers = [int(each) for each in re.findall(r"=(\d{1,6})(?=/|\Z)", hierarchy)]
    command = words[place] if place < len(words) else ""
    return JobRequest(
        comment(command),
        min(max(1, math.prod(numbers)), 1_000_000_000),
        partitions_in(values.get("--property", ""), attribute),
    )


def placed(words: Sequence[str], partition: str, attribute: str) -> list[str]:
    """The words with a partition, beside the condition that they have.

    >>> placed(["-l", "core=4", "-p", "gpu='NO'", "./cg.sh"], "new", "cluster")
    ['-l', 'core=4', '-p', "(gpu='NO') AND cluster = 'new'", './cg.sh']
    """
    if not attribute or not re.fullmatch(r"[\w.-]{1,255}", partition, re.ASCII):
        return list(words)
    condition = f"{attribute} = '{partition}'"
    _, place = options(words)
    made = list(words)
    for number in reversed(range(place)):  # of several conditions oarsub takes the last
        if made[number] in ("-p", "--property") and number + 1 < place:
            made[number + 1] = f"({made[number + 1]}) AND {condition}"
            return made
        for head in ("--property=", "-p"):
            if made[number].startswith(head) and len(made[number]) > len(head):
                made[number] = f"{head}({made[number].removeprefix(head)}) AND {condition}"
                return made
    return [*made[:place], "-p", condition, *made[place:]]
