"""Limits of jobs in Slurm's accounting: of the partition's QOS, the job's QOS, and the user's associations.

Slurm asks them in this order, and each limit holds as the first that sets it says; a QOS with the flag ``OverPartQOS``
goes before that of the partition. An association is a user in an account, perhaps in one partition alone; above it
stand the account, the accounts that this belongs to, and the root of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from metasched.placement.clusters.partition import Holder, JobLimits
from metasched.schedulers.slurm.cells import count_in
from metasched.slurm_times import span

#: What is asked for of a QOS, and of an association, in this order.
OF_QOS = ("Name", "Flags", "MaxTRESPerJob", "MaxTRESPerUser", "MaxTRESPerAccount", "GrpTRES", "MaxWall")
OF_ASSOCIATIONS = ("Account", "User", "Partition", "ParentName", "MaxTRESPerJob", "GrpTRES", "MaxWall")
#: Limits by what they count, such as ("GrpTRES", "cpu"), or time (s).
_Set = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class AccountingLimits:
    """All that limits the jobs of a cluster.

    Parameters
    ----------
    qos : what each QOS sets.
    over_partition : names of the QOS that go before that of the partition.
    associations : what each association sets, by account, user and partition; user and partition may be empty.
    parents : the account that each account belongs to.
    accounts : the accounts of each user.
    """

    qos: Mapping[str, _Set] = field(default_factory=dict)
    over_partition: frozenset[str] = frozenset()
    associations: Mapping[tuple[str, str, str], _Set] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, holder: Holder, partition: str, partition_qos: str = "") -> JobLimits:
        r"""The most that a job may have.

        A job that is larger than all jobs of its user, of its account or of the QOS may be together never starts, so
        these bound it too.

        Parameters
        ----------
        holder : whose job it is.
        partition : where it is to run.
        partition_qos : the QOS of that partition, empty where it has none.

        Examples
        --------
        >>> limits = read_limits("normal||||||\nsmall||cpu=8,node=2|||cpu=4|01:00:00\n", "bio|ann|||cpu=6||\n")
        >>> limits.of(Holder("small", "ann", "bio"), "batch")
        JobLimits(processors=4, nodes=2, time=3600.0, fewest_nodes=1)
        >>> limits.of(Holder("normal", "ann"), "batch")
        JobLimits(processors=6, nodes=None, time=None, fewest_nodes=1)
        """
        found: dict[tuple[str, str], float] = {}
        for limits in self._in_order(holder, partition, partition_qos):
            for what, most in limits.items():
                found.setdefault(what, most)
        least = {
            resource: min((int(most) for (_, kind), most in found.items() if kind == resource), default=None)
            for resource in ("cpu", "node")
        }
        return JobLimits(least["cpu"], least["node"], found.get(("MaxWall", "")))

    def _in_order(self, holder: Holder, partition: str, partition_qos: str) -> Iterator[_Set]:
        order = [partition_qos, holder.qos]
        for name in reversed(order) if holder.qos in self.over_partition else order:
            yield self.qos.get(name, {})
        account, user = holder.account, holder.user
        if not account:
            only = self.accounts.get(user, ())
            account = only[0] if len(only) == 1 else ""
        for key in ((account, user, partition), (account, user, "")):
            if key in self.associations:
                yield self.associations[key]
                break
        seen: set[str] = set()
        while account and account not in seen:
            seen.add(account)
            yield self.associations.get((account, "", ""), {})
            account = self.parents.get(account, "")


def read_limits(qos: str, associations: str) -> AccountingLimits:
    """All limits, from what ``sacctmgr --parsable2 --noheader show`` prints of QOS and associations.

    Parameters
    ----------
    qos : a line for each, with the columns :data:`OF_QOS`.
    associations : of one cluster, a line for each, with the columns :data:`OF_ASSOCIATIONS`.
    """
    of_qos, over = {}, set()
    for row in _rows(qos, OF_QOS):
        of_qos[row["Name"]] = _set(row)
        if "overpartqos" in row["Flags"].lower().split(","):
            over.add(row["Name"])
    found, parents, accounts = {}, {}, dict[str, tuple[str, ...]]()
    for row in _rows(associations, OF_ASSOCIATIONS):
        account, user = row["Account"], row["User"]
        found[account, user, row["Partition"]] = _set(row)
        if user:
            accounts[user] = tuple(dict.fromkeys((*accounts.get(user, ()), account)))
        elif row["ParentName"]:
            parents[account] = row["ParentName"]
    return AccountingLimits(of_qos, frozenset(over), found, parents, accounts)


def _rows(printed: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for line in printed.splitlines():
        cells = line.split("|")
        if len(cells) == len(columns):
            yield dict(zip(columns, cells, strict=True))


def _set(row: Mapping[str, str]) -> _Set:
    """The limits of a QOS or an association; missing numbers are no limit."""
    found: dict[tuple[str, str], float] = {}
    for column, cell in row.items():
        if "TRES" in column:
            for word in cell.split(","):
                kind, _, value = word.partition("=")
                if kind in ("cpu", "node") and (count := count_in(value)) is not None:
                    found[column, kind] = count
    longest = span(row["MaxWall"])
    return found if longest is None else found | {("MaxWall", ""): longest}
