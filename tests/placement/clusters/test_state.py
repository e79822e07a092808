"""The state of a cluster has one value of everything for each of its nodes."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.records import InputError


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"available_cpu": [1.0, 0.5, 0.2]}, r"a column of cluster c has shape \(3,\), expected \(2,\)"),
        ({"jobs": [[1, 2]]}, r"a column of cluster c has shape \(1, 2\), expected \(2,\)"),
        ({"network": Topology.star("c", 3)}, "network and features of cluster c must cover its 2 nodes"),
        ({"features": [frozenset()]}, "network and features of cluster c must cover its 2 nodes"),
    ],
)
def test_what_is_not_of_as_many_nodes_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}$"):
        ClusterState.make("c", ["n0", "n1"], **columns)
