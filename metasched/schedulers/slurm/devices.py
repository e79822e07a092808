"""Generic resources of jobs and nodes, GPUs foremost, as Slurm writes them.

A request reads ``gres:gpu:a100:2`` (``gres/gpu:a100:2`` from 23.02 on), what the accounting counts
``gres/gpu=2,gres/gpu:a100=2``, and a node ``gpu:a100:2(S:0-1)``. A request, and an accounting that counts GPUs of all
types together, name no type: then it is that of the nodes, if all of their GPUs are alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from metasched.jobs import Devices
from metasched.records import LONGEST_WORD

#: Counted resources of a job besides generic resources.
_OTHER = frozenset({"cpu", "mem", "node", "billing", "energy", "vmem", "pages", "license", "bb", "fs", "ic"})
_COUNT = re.compile(r"(\d{1,12})([KMGT]?)")
_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: The name of GPUs among generic resources, and their type if none is stated.
_GPU, UNKNOWN = "gpu", "unknown"

#: The number of resources of each name and type; the type is empty if it is not stated.
Counts = Mapping[tuple[str, str], int]


def counts(text: str) -> Counts:
    """The generic resources that a text names; those of a type are not counted again where no type is stated.

    >>> counts("cpu=2,mem=1G,gres/gpu=3,gres/gpu:a100=2")
    {('gpu', ''): 1, ('gpu', 'a100'): 2}
    >>> counts("gpu:a100:2(S:0,1),fpga"), counts("gres:gpu:2"), counts("(null)")
    ({('gpu', 'a100'): 2, ('fpga', ''): 1}, {('gpu', ''): 2}, {})
    """
    found: Counter[tuple[str, str]] = Counter()
    for entry in re.sub(r"\([^()]*\)", "", text).split(","):
        name, *words = re.split("[:=]", re.sub(r"^gres[:/]", "", entry.strip()))
        if not name or name == "N/A" or name.partition("/")[0] in _OTHER:
            continue
        count = _COUNT.fullmatch(words[-1]) if words else None
        number = int(count[1]) * _UNIT[count[2]] if count else 1
        types = [word for word in (words[:-1] if count else words) if word != "no_consume"]
        found[name, types[0] if types else ""] += number
    for name in {name for name, kind in found if kind}:
        typed = sum(number for (other, kind), number in found.items() if other == name and kind)
        found[name, ""] = max(found[name, ""] - typed, 0)
    return {key: number for key, number in found.items() if number}


def typed(found: Counts, nodes: Iterable[Counts]) -> Counts:
    """The same, with the type that its nodes have where none is stated and all of theirs are alike.

    >>> typed({("gpu", ""): 2}, [{("gpu", "a100"): 4}, {}])
    {('gpu', 'a100'): 2}
    >>> typed({("gpu", ""): 2}, [{("gpu", "a100"): 4}, {("gpu", "v100"): 4}])
    {('gpu', ''): 2}
    """
    there = [key for node in nodes for key in node]
    known: Counter[tuple[str, str]] = Counter()
    for (name, kind), number in found.items():
        types = {other for each, other in there if each == name}
        known[name, kind or (types.pop() if len(types) == 1 else "")] += number
    return dict(known)


def had(asked: Counts, allocated: Counts) -> Counts:
    """The allocated resources of a job, as far as they are counted, else the requested ones.

    >>> had({("gpu", "a100"): 0, ("fpga", ""): 1}, {("gpu", ""): 2})
    {('fpga', ''): 1, ('gpu', 'a100'): 2}
    """
    names = {name for name, _ in allocated}
    found = {key: number for key, number in asked.items() if key[0] not in names}
    for name in sorted(names):
        given = {kind: number for (other, kind), number in allocated.items() if other == name}
        types = [kind for other, kind in asked if other == name and kind]
        if set(given) == {""} and len(types) == 1:
            given = {types[0]: given[""]}
        found |= {(name, kind): number for kind, number in given.items()}
    return found


def requested(row: Mapping[str, str], nodes: int) -> Counts:
    """What a job asked for, as squeue reports it; 0 of what it asked for by the socket, whose number is unknown.

    >>> row = dict.fromkeys(("tres-per-job", "tres-per-socket", "tres-per-task"), "N/A") | {"NumTasks": "4"}
    >>> requested(row | {"tres-per-node": "gres:gpu:a100:2"}, 3)
    {('gpu', 'a100'): 6}
    """
    tasks = int(row["NumTasks"]) if row["NumTasks"].isdecimal() else 0
    found: dict[tuple[str, str], int] = {}
    for column, times in (("tres-per-socket", 0), ("tres-per-task", tasks), ("tres-per-node", nodes),
                          ("tres-per-job", 1)):  # fmt: skip
        for key, number in counts(row[column]).items():
            found[key] = number * times
    return found


def uncounted(accounting: str, nodes: Iterable[Counts]) -> bool:
    """Whether some nodes have what an accounting does not count, so that it is unknown whether a job of theirs had it.

    Parameters
    ----------
    accounting : AccountingStorageTRES of the configuration.
    nodes : what each has.

    Examples
    --------
    >>> gpus = [{("gpu", "a100"): 4}]
    >>> uncounted("cpu,mem", gpus), uncounted("cpu,gres/gpu", gpus), uncounted("gres/gpu:v100", gpus)
    (True, False, True)
    >>> uncounted("cpu", [{}])
    False
    """
    counted = counts(accounting)
    return any((name, "") not in counted and (name, kind) not in counted for node in nodes for name, kind in node)


def devices(found: Counts) -> Devices:
    """The parameters that distinguish runs with such resources.

    >>> devices({("gpu", "a100"): 2}), devices({("gpu", ""): 1, ("fpga", ""): 1}), devices({})
    ((('gpu', 'a100'), ('gpus', 2.0)), (('gpu', 'unknown'), ('gpus', 1.0), ('gres', 'fpga')), ())
    """
    gpus = {kind or UNKNOWN: number for (name, kind), number in sorted(found.items()) if name == _GPU}
    others = [f"{name}-{kind}" if kind else name for name, kind in sorted(found) if name != _GPU]
    parameters: list[tuple[str, float | str]] = []
    if gpus:
        parameters.append(("gpu", _word(gpus)))
        if all(gpus.values()):
            parameters.append(("gpus", float(sum(gpus.values()))))
    if others:
        parameters.append(("gres", _word(others)))
    return tuple(parameters)


def _word(names: Iterable[str]) -> str:
    """A word of a parameter: no number, however a type is called."""
    word = re.sub(r"[^A-Za-z0-9_.+-]", "_", "+".join(names))[: LONGEST_WORD - 1]
    try:
        float(word)
    except ValueError:
        return word
    return f"_{word}"
