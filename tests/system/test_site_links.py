"""The real agents of four sites and the real daemon of their grid: links between sites, with tokens of the sites."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from metasched.store.database.store import Store
from tests.free_ports import free_ports
from tests.system.real_daemon import ROOT, TIMEOUT, Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

SITES = ("home", "east", "west", "north")
ROUTING = '[routing]\nhere = "home"\n' + "".join(
    f'[[routing.route]]\nbetween = ["{one}", "{other}"]\nlinks = ["access {one}", "access {other}"]\n'
    for one, other in combinations(SITES, 2)
)


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Daemon]:
    """The grid's daemon, with the token of a node and of each site but north, and their agents.

    The agent of west has the token of a node, that of north has none.
    """
    port, *probed = free_ports(1 + len(SITES))
    tables = "".join(f'[[site]]\nname = "{name}"\nurl = "{tmp_path}/{name}.sock"\n' for name in SITES[1:])
    with Store.open(str(tmp_path / "metasched.db")) as store:
        secrets = {name: store.tokens.add(f"links of {name}", "site", node=name) for name in ("home", "east")}
        secrets["west"] = store.tokens.add("agent of n1", "agent", node="n1")
    daemon = Daemon(tmp_path, tables + ROUTING, port=port)
    places = "".join(f'{name} = "127.0.0.1:{place}"\n' for name, place in zip(SITES, probed, strict=True))
    with ExitStack() as stack:
        stack.callback(daemon.stop)
        daemon.start()
        for name, place in zip(SITES, probed, strict=True):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "agent.toml").write_text(
                f'node = "{name}-n1"\nspool = "{folder}/spool.db"\ninterval = 0.5\ninterface = "lo"\nprobe_budget = 0\n'
                f'site = "{name}"\nsites_daemon = "http://127.0.0.1:{port}"\nsites_listen = "127.0.0.1:{place}"\n'
                f"sites_period = 1.0\nsites_transfer = 1048576\n[sites]\n{places}"
            )
            variables = {"METASCHED_AGENT_SITES_SECRET": "sixteen bytes of secret"}
            if name in secrets:
                (folder / "token").write_text(f"{secrets[name]}\n")
                variables["METASCHED_AGENT_SITES_TOKEN_FILE"] = str(folder / "token")
            log = stack.enter_context((folder / "agent.log").open("ab"))
            agent = subprocess.Popen(
                [sys.executable, "-m", "metasched", "agent", str(folder / "agent.toml")],
                cwd=ROOT, stdout=log, stderr=log, env=os.environ | variables,
            )  # fmt: skip
            stack.callback(agent.wait, TIMEOUT)
            stack.callback(agent.send_signal, signal.SIGTERM)
        yield daemon


def test_the_agents_of_sites_report_links_and_others_are_refused(grid: Daemon, tmp_path: Path) -> None:
    def shown() -> dict[str, Any]:
        found: dict[str, Any] = grid.ask("GET", "/v1/sites")
        return found

    refused = "the daemon takes no links between sites: HTTP 403"
    until = time.monotonic() + TIMEOUT
    while True:
        links = (shown()["links"] or {}).get("links", [])
        # Five paths of two links: what west measured to north was refused.
        crossed = sum(each["paths"] for each in links if len(each["links"]) == 1)
        if crossed == 10 and refused in (tmp_path / "west" / "agent.log").read_text():
            break
        assert time.monotonic() < until, (links, (tmp_path / "home" / "agent.log").read_text())
        time.sleep(0.5)
    assert {name for each in links for name in each["links"]} == {f"access {name}" for name in SITES}
    assert all(each["identifiable"] for each in links), links
    sites = {each["site"]: each for each in shown()["sites"]}
    assert {each["bandwidth_source"] for each in sites.values()} == {"probes"}
    assert min(each["bandwidth"] for each in sites.values()) > 1.0
    status = subprocess.run(
        [sys.executable, "-m", "metasched", "sites", "status", "--config", str(grid.folder / "metasched.toml")],
        cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, env=os.environ | {"COLUMNS": "160"},
    )  # fmt: skip
    assert status.returncode == 0, status.stderr
    assert "access north" in status.stdout
    assert "the links explain bandwidths to within" in status.stdout
