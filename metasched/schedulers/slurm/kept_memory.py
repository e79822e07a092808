"""The memory that nodes keep for the system (``MemSpecLimit``), which JSON has from release 23.02 on only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KEPT = re.compile(r"^NodeName=(\S+) .*? MemSpecLimit=(\d+) ", re.MULTILINE)


def kept_memory(text: str) -> dict[str, int]:
    r"""The memory that each node keeps (megabytes), by its name; nodes that keep none are left out.

    Parameters
    ----------
    text : what ``scontrol --oneliner show nodes`` prints.

    Examples
    --------
    >>> kept_memory("NodeName=n1 Boards=1 MemSpecLimit=300 State=IDLE\nNodeName=n2 Boards=1 State=IDLE\n")
    {'n1': 300}
    """
    return {name: int(megabytes) for name, megabytes in _KEPT.findall(text)}


def unnamed(nodes: list[dict[str, Any]]) -> bool:
    """Whether the listed nodes do not say what they keep."""
    return not any("specialized_memory" in node for node in nodes)


def with_kept_memory(listed: dict[str, Any], kept: Mapping[str, int]) -> dict[str, Any]:
    """The document that lists all nodes, as a later release prints it.

    Parameters
    ----------
    listed : decoded JSON.
    kept : of each node that keeps memory (megabytes).
    """
    nodes = [node | {"specialized_memory": kept.get(node["name"], 0)} for node in listed["nodes"]]
    return listed | {"nodes": nodes}
