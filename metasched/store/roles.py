"""What the clients of the daemon may be."""

from __future__ import annotations

from typing import Literal, get_args

#: agent writes the loads of its own node; scheduler asks for placements and tells of jobs; reader only looks; admin may
#: do everything.
Role = Literal["agent", "scheduler", "reader", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
