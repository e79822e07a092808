"""Advice for programs that submit jobs themselves: workflow managers, scripts, portals.

A program must go on without it. So whatever the daemon does, dead, slow or lying, the answer comes within a deadline,
and where it is not sound there is none.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from metasched.client.connection import ask
from metasched.client.soundness import NAME, count, matching, number
from monitors.one_line import one_line

#: How long the daemon may take in all (s), and bytes of its answer that are read: a longer one takes long to be parsed.
TIMEOUT, MOST_BYTES = 2.0, 1 << 22
#: Folded names of nodes.
_NODES = re.compile(r"[\w.,\[\]-]{1,65536}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Advice:
    """Where a job should run.

    Parameters
    ----------
    scheduler, partition : in the scheduler's words; empty for a cluster without one.
    nodes : names of the nodes, folded as ``n[1-4]``.
    node_count, processors : how many.
    execution_time, low, high : what it should take there (s), and the prediction interval.
    time_limit : a limit that it should hardly reach (s), None where none is suggested.
    reason : in words, for people.
    """

    scheduler: str
    partition: str
    nodes: str
    node_count: int
    processors: int
    execution_time: float
    low: float
    high: float
    time_limit: float | None
    reason: str


def advice(
    address: str,
    application: str,
    problem_size: float,
    *,
    token: str | None = None,
    verify: str | bool = True,
    timeout: float = TIMEOUT,
    **demands: Any,
) -> Advice | None:
    """Where a job should run; None where there is no sound advice in time.

    Parameters
    ----------
    address : a URL, or the path of the daemon's Unix socket.
    application, problem_size : of the job.
    token : the client's secret, with a role that may read; the Unix socket needs none.
    verify : file of the certificates to trust, True for the system's.
    timeout : how long the daemon may take in all (s).
    demands : as ``POST /v1/placements`` takes them: ``processors``, ``min_processors``, ``max_processors``,
        ``partitions``, ``parameters``, ...

    Examples
    --------
    >>> print(advice("/nowhere/metasched.sock", "cg", 1400, max_processors=16))
    None
    """
    question = {"application": application, "problem_size": problem_size, "trial": True} | demands
    try:
        answer = ask(
            address, "POST", "/v1/placements", question, token=token, verify=verify, timeout=timeout, most=MOST_BYTES
        )
        return _sound(answer, question)
    except (RuntimeError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _sound(answer: Any, question: dict[str, Any]) -> Advice | None:
    """The advice in an answer; None where there is none, an error where it is not what was asked for."""
    if answer["placed"] is not True:
        return None
    placement = answer["placement"]
    longer = number(placement["slowdown"])
    time, low, high = (
        longer * number(each)
        for each in (placement["execution_time"], placement["interval"]["low"], placement["interval"]["high"])
    )
    found = Advice(
        scheduler=matching(answer["scheduler"], NAME, empty=True),
        partition=matching(answer["partition"], NAME, empty=True),
        nodes=matching(answer["nodes"], _NODES),
        node_count=count(answer["node_count"]),
        processors=count(answer["processors"]),
        execution_time=time,
        low=low,
        high=high,
        time_limit=None if answer["time_limit"] is None else number(answer["time_limit"]),
        reason=one_line(str(answer["message"]), 1000),
    )
    allowed, partitions = question.get("processors"), question.get("partitions")
    if (
        (allowed and found.processors not in allowed)
        or found.processors < question.get("min_processors", 1)
        or found.processors > question.get("max_processors", math.inf)
        or (partitions and found.partition not in partitions)
        or found.node_count > found.processors
        or not found.low <= found.execution_time <= found.high
    ):
        raise ValueError("the answer does not match the question")
    return found
