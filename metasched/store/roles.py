"""What the clients of the daemon may be."""

from __future__ import annotations

from typing import Literal, get_args

from metasched.node_names import names_one
from metasched.records import InputError

#: agent writes the loads of its own node; site reports the links from its own site to others; scheduler asks for
#: placements and tells of jobs; reader only looks; admin may do everything.
Role = Literal["agent", "site", "scheduler", "reader", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)


def check_token(name: str, role: str, node: str | None, user: str | None) -> Role:
    """The role of a token that can be made.

    Parameters
    ----------
    name, role : of the token.
    node : whose loads an agent may send, or the site whose links a site's agent may report.
    user : whose jobs a reader may see; nobody's if it is None.

    Raises
    ------
    InputError : when the name is empty, a name holds control characters or the role is not known, an agent does not
        name one node or a site none, another role names one, or another role than a reader names a user.

    Examples
    --------
    >>> check_token("n1", "agent", "n1", None)
    'agent'
    """
    known = next((each for each in ROLES if each == role), None)
    if known is None:
        raise InputError(f"role is {role!r}, expected one of {', '.join(ROLES)}")
    if not name:
        raise InputError("name of the token is empty, expected a name")
    for each in (name, node or "", user or ""):
        each.encode()  # a name that is no Unicode is refused as such
        if not each.isprintable():  # as it would stand in logs and tables
            raise InputError(f"{each!r} holds characters that cannot be shown, expected a name in one line")
    if known in ("agent", "site") and not node:
        kind = "node" if known == "agent" else "site"
        raise InputError(f"no {kind} is named, expected one for the role {known} (--{kind})")
    if known == "agent" and node and not names_one(node):
        raise InputError(f"node is {node!r}, expected the name of one node")
    if known not in ("agent", "site") and node is not None:
        raise InputError(
            f"{node!r} is named for the role {known}, expected a node or a site for an agent or a site only"
        )
    if user is not None and (known != "reader" or not user):
        raise InputError("a user may be named for a reader only: other roles see no jobs, or all")
    return known
