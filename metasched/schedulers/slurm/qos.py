"""What Slurm's qualities of service (QOS) allow a job, as ``sacctmgr show qos`` tells of them."""

from __future__ import annotations

from collections.abc import Mapping

from metasched.placement.clusters.partition import JobLimits
from metasched.slurm_times import span

#: What is asked for, in this order: the name, what limits the resources of a job, and its time.
COLUMNS = ("Name", "MaxTRESPerJob", "MaxTRESPerUser", "MaxTRESPerAccount", "GrpTRES", "MaxWall")


def limits_of_qos(printed: str) -> Mapping[str, JobLimits]:
    r"""The limits of each QOS that has any, from what ``sacctmgr --parsable2 --noheader show qos`` prints.

    A job larger than all jobs of its user, of its account or of the QOS may be together never starts, so these bound it
    too.

    Parameters
    ----------
    printed : a line for each QOS, with :data:`COLUMNS`.

    Examples
    --------
    >>> limits_of_qos("normal|||||\nsmall|cpu=8,node=2|||cpu=4|01:00:00\n")
    {'small': JobLimits(processors=4, nodes=2, time=3600.0)}
    """
    found = {}
    for line in printed.splitlines():
        cells = line.split("|")
        if len(cells) != len(COLUMNS):
            continue
        words = [word.partition("=") for cell in cells[1:-1] for word in cell.split(",")]
        least = {
            name: min((int(value) for kind, _, value in words if kind == name and value.isdecimal()), default=None)
            for name in ("cpu", "node")
        }
        limits = JobLimits(least["cpu"], least["node"], span(cells[-1]) if cells[-1] else None)
        if limits != JobLimits():
            found[cells[0]] = limits
    return found
