"""How often Slurm's nodes have failed, by its accounting: nodes that went down, and jobs that a node took with it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable

from metasched.blocks.failures import FailureRate
from metasched.schedulers.slurm.cells import nodes_in, seconds_in
from metasched.schedulers.slurm.commands import SlurmCommands, period, utc_time
from metasched.slurm_times import span

#: Length of the period whose records count (s), where the accounting keeps them as long.
WINDOW = 365 * 86_400.0
#: A job that ended within this many seconds of a failure of one of its nodes was hit by that failure, not by another.
SAME = 900.0
#: What sacct is asked for of jobs that a node took with it.
STRUCK = ("End", "NodeList")
#: Settings of slurmdbd that bound how far back records go, or may be asked for.
_BOUNDS = ("PurgeEventAfter", "PurgeJobAfter", "MaxQueryTimeRange")
#: How slurmdbd writes after which time it purges, with an asterisk where it keeps an archive of it.
_PURGED = re.compile(r"(?P<count>\d{1,9}) (?P<unit>hour|day|month)s?\*?", re.ASCII)
#: Seconds in a unit. A month has 28 days at least.
_UNITS = {"hour": 3600.0, "day": 86_400.0, "month": 28 * 86_400.0}
#: What a question takes (s), so that it stays within the longest period that may be asked for.
_ASKING = 60.0


def failure_rate(commands: SlurmCommands, now: float | None = None) -> FailureRate:
    """The failure rate of a node, with the doubt that few failures leave.

    Raises
    ------
    RuntimeError : when Slurm's commands fail.
    InputError : when its records go back no time at all.
    """
    now = time.time() if now is None else now
    since = now - recorded_for(commands.run("sacctmgr", "--noheader", "show", "configuration"))
    query = "show", "event", f"start={utc_time(since)}", "format=nodename,timestart,timeend,state"
    events = [line.split("|") for line in commands.run("sacctmgr", "--noheader", "--parsable2", *query).splitlines()]
    nodes = set(commands.run("sinfo", "--noheader", "--Node", "--format=%N").split())
    words = ("sacct", "--allusers", "--allocations", *period(since), "--state=NODE_FAIL")
    struck = [(seconds_in(row["End"]) or 0.0, nodes_in(row["NodeList"])) for row in commands.table(STRUCK, *words)]
    rows = [(node, seconds_in(begin) or 0.0, seconds_in(end) or now, state) for node, begin, end, state in events]
    return FailureRate.observed(*counted(rows, struck, nodes, since, now))


def recorded_for(configuration: str) -> float:
    """How far back the accounting tells of all failures (s): a year, or less where slurmdbd purges or refuses earlier.

    Parameters
    ----------
    configuration : what ``sacctmgr show configuration`` prints.

    Examples
    --------
    >>> [recorded_for(line) / 86_400 for line in ("PurgeEventAfter = NONE", "PurgeJobAfter = 2 months*")]
    [365.0, 56.0]
    """
    found = [WINDOW]
    for name, _, cell in (line.partition("=") for line in configuration.splitlines()):
        if name.strip() not in _BOUNDS:
            continue
        if purged := _PURGED.fullmatch(cell.strip()):
            found.append(int(purged["count"]) * _UNITS[purged["unit"]])
        elif longest := span(cell):
            found.append(max(longest - _ASKING, 0.0))
    return min(found)


def counted(
    events: Iterable[tuple[str, float, float, str]],
    struck: Iterable[tuple[float, Collection[str]]],
    nodes: Collection[str],
    since: float,
    now: float,
) -> tuple[int, float]:
    """Failures of a cluster's nodes, and the node seconds in which they happened.

    Parameters
    ----------
    events : node (empty for what befell all), begin, end, and state, as ``sacctmgr show event`` tells them.
    struck : jobs that ended as NODE_FAIL: when, and on which nodes.
    nodes : that the cluster has now; others tell nothing, since it is unknown for how long it had them.
    since, now : from when and until when records count, seconds since 1970. They begin with the first event, since
        Slurm records one when a cluster is registered; without any, they tell of no time.

    Jobs that ended together are one failure where one node can have taken them all. Time in which a node was down or
    drained does not count; nor does a drain as a failure, since people drain nodes.

    Examples
    --------
    >>> events = [("", 0, 9000, ""), ("n1", 4000, 4500, "DOWN*"), ("n2", 6000, 6100, "DRAIN")]
    >>> counted(events, [(4010.0, ["n1"]), (8000.0, ["n1", "n2"]), (8000.0, ["n2"])], ["n1", "n2"], 0.0, 9000.0)
    (2, 17400.0)
    """
    clipped = [(node, max(begin, since), end, state) for node, begin, end, state in events]
    since = min((begin for _, begin, _, _ in clipped), default=now)
    rows = [row for row in clipped if row[0] in nodes]
    failed = [(begin, {node}) for node, begin, _, state in rows if state.startswith(("DOWN", "FAIL"))]
    known = [(end, {*held} & {*nodes}) for end, held in struck]
    for end, held in sorted(known, key=lambda job: (job[0], len(job[1]))):
        for place, (begin, suspects) in enumerate(failed):
            if abs(end - begin) <= SAME and not suspects.isdisjoint(held):
                failed[place] = begin, suspects & held
                break
        else:
            if held:
                failed.append((end, held))
    lost = sum(end - begin for _, begin, end, _ in rows)
    return len(failed), len(nodes) * (now - since) - lost
