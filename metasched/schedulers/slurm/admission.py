"""Whose jobs a partition of Slurm admits, and what it gives them, by what ``scontrol show partition`` tells of it."""

from __future__ import annotations

from collections.abc import Mapping

from metasched.placement.clusters.partition import Holder

#: The QOS of a job whose user's association names none.
USUAL_QOS = "normal"
#: How a partition spells that it admits all, or none is denied.
_ALL = frozenset({"", "all", "(null)", "n/a"})


def admits(described: Mapping[str, str], holder: Holder) -> bool:
    """Whether a job of somebody may run in a partition without a reservation.

    Slurm refuses a job in a partition that does not admit it, or lets it wait there without end. Groups are not
    considered: Slurm does not show their partitions to others.

    Parameters
    ----------
    described : fields of the partition.
    holder : whose job it is. An account that is not known is in no list.

    Examples
    --------
    >>> admits({"AllowAccounts": "physics,bio", "DenyQos": "long"}, Holder(account="bio"))
    True
    >>> admits({"AllowAccounts": "physics"}, Holder(account="bio")), admits({"ReqResv": "YES"}, Holder())
    (False, False)
    """
    if described.get("ReqResv") == "YES" or (described.get("RootOnly") == "YES" and holder.user != "root"):
        return False
    for what, own in (("Accounts", holder.account), ("Qos", holder.qos or USUAL_QOS)):
        allowed, denied = (_names(described.get(f"{kind}{what}", "")) for kind in ("Allow", "Deny"))
        if (allowed and own.lower() not in allowed) or own.lower() in denied:
            return False
    return True


def _names(text: str) -> frozenset[str]:
    """The names in a list of a partition's field, none where it holds all."""
    return frozenset() if text.lower() in _ALL else frozenset(text.lower().split(","))
