"""No agent can fill the disk: each node, and each client, has its share of samples a second."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from metasched.service import load_intake
from metasched.service.app import make_app
from tests.service.daemons import headers_for, running

BATCH = 5000


def batch(node: str, number: int) -> dict[str, object]:
    """Samples that nobody has sent before."""
    end = time.time() - 60.0 * number
    return {"node": node, "samples": [[end - 0.01 * k, 0.5, 90.0] for k in range(BATCH)]}


def test_a_node_that_floods_is_refused_with_a_count_and_others_are_heard(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, limits={"samples_per_second": 1e-3, "samples_at_once": 10_000}) as daemon:
        heads = [
            {"Authorization": f"Bearer {daemon.store.tokens.add(node, 'agent', node=node)}"} for node in ("e1", "e2")
        ]
        daemon.access.refresh()
        client = TestClient(make_app(daemon))
        answers = [client.post("/v1/loads", json=batch("e1", k), headers=heads[0]) for k in range(4)]
        assert [each.status_code for each in answers] == [200, 200, 429, 429]
        assert answers[2].json()["detail"] == "5000 samples of e1 are too many at once, and none was accepted"
        assert int(answers[2].headers["Retry-After"]) > 1000
        assert client.post("/v1/loads", json=batch("e2", 9), headers=heads[1]).status_code == 200
        assert len(daemon.store.loads.all(node="e1")) == 2 * BATCH
        assert 'metasched_loads_refused_total{reason="too many"} 10000.0' in daemon.metrics.exposition().decode()


def test_a_client_that_speaks_for_all_nodes_has_a_share_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_intake, "NODES", 2)
    with running(tmp_path, learned=False, limits={"samples_per_second": 1e-3, "samples_at_once": 10_000}) as daemon:
        heads = headers_for(daemon, "s", "scheduler")
        client = TestClient(make_app(daemon))
        nodes = ("e1", "e2", "e3", "e4", "w1", "w2")
        answers = [client.post("/v1/loads", json=batch(node, 0), headers=heads).status_code for node in nodes]
        assert answers == [200, 200, 200, 200, 429, 429]
