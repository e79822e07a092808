"""How often Slurm's nodes have failed, by its accounting: nodes that went down, and jobs that a node took with it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from metasched.blocks.failures import FailureRate
from metasched.schedulers.slurm.cells import nodes_in, seconds_in
from metasched.schedulers.slurm.commands import SlurmCommands, local_time, period

#: Length of the period whose records count (s).
WINDOW = 365 * 86_400.0
#: A job that ended within this many seconds of a failure of one of its nodes was hit by that failure, not by another.
SAME = 900.0
#: What sacct is asked for of jobs that a node took with it.
STRUCK = ("End", "NodeList")


def failure_rate(commands: SlurmCommands, now: float | None = None) -> FailureRate:
    """The failure rate of a node, with the doubt that few failures leave.

    Raises
    ------
    RuntimeError : when Slurm's commands fail.
    InputError : when its records go back no time at all.
    """
    now = time.time() if now is None else now
    query = "show", "event", f"start={local_time(now - WINDOW)}", "format=nodename,timestart,timeend,state"
    events = [line.split("|") for line in commands.run("sacctmgr", "--noheader", "--parsable2", *query).splitlines()]
    nodes = set(commands.run("sinfo", "--noheader", "--Node", "--format=%N").split())
    words = ("sacct", "--allusers", "--allocations", *period(now - WINDOW), "--state=NODE_FAIL")
    struck = [(seconds_in(row["End"]) or 0.0, nodes_in(row["NodeList"])) for row in commands.table(STRUCK, *words)]
    rows = [(node, seconds_in(begin) or 0.0, seconds_in(end) or now, state) for node, begin, end, state in events]
    return FailureRate.observed(*counted(rows, struck, len(nodes), now))


def counted(
    events: Iterable[tuple[str, float, float, str]],
    struck: Iterable[tuple[float, Collection[str]]],
    nodes: int,
    now: float,
) -> tuple[int, float]:
    """Failures, and the node seconds in which they happened.

    Parameters
    ----------
    events : node (empty for what befell all), begin, end, and state, as ``sacctmgr show event`` tells them.
    struck : jobs that ended as NODE_FAIL: when, and on which nodes.
    nodes : how many there are.
    now : until when records count.

    Jobs that ended together are one failure where one node can have taken them all. Time in which a node was down or
    drained does not count; nor does a drain as a failure, since people drain nodes.

    Examples
    --------
    >>> events = [("", 0, 9000, ""), ("n1", 4000, 4500, "DOWN*"), ("n2", 6000, 6100, "DRAIN")]
    >>> counted(events, [(4010.0, ["n1"]), (8000.0, ["n1", "n2"]), (8000.0, ["n2"])], 2, 9000.0)
    (2, 17400.0)
    """
    rows = [(node, max(begin, now - WINDOW), end, state) for node, begin, end, state in events]
    since = min((begin for _, begin, _, _ in rows), default=now - WINDOW)
    failed = [(begin, {node}) for node, begin, _, state in rows if node and state.startswith(("DOWN", "FAIL"))]
    for end, held in sorted(struck, key=lambda job: (job[0], len(job[1]))):
        for place, (begin, suspects) in enumerate(failed):
            if abs(end - begin) <= SAME and not suspects.isdisjoint(held):
                failed[place] = begin, suspects & {*held}
                break
        else:
            if held:
                failed.append((end, {*held}))
    lost = sum(end - begin for node, begin, end, _ in rows if node)
    return len(failed), nodes * (now - since) - lost
