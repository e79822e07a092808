"""Links between sites: one agent of each site probes those of the others, and tells its daemon what it found."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from monitors.agent.agent import Agent
from monitors.agent.settings import Settings
from monitors.agent.site_links import SiteLinks
from monitors.sensors.network.probe import Link
from tests.free_ports import free_ports


class Daemon(ThreadingHTTPServer):
    """Takes whatever is posted, and answers with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Intake)
        self.status, self.heard = 200, []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Intake(BaseHTTPRequestHandler):
    server: Daemon

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_the_newest_of_each_link_is_sent_once_with_its_age(daemon: Daemon) -> None:
    now = [100.0]
    links = SiteLinks("north", f"http://127.0.0.1:1 {daemon.url}", "secret", clock=lambda: now[0])
    for bandwidth in (90.0, 100.0):
        links.note("east", Link(bandwidth, 0.02, 1 << 20))
    links.note("dead", Link(0.0, 0.02, 1 << 20))
    now[0] = 130.0
    assert links.send()
    assert links.send()
    sent = {"site": "north", "links": [{"site": "east", "bandwidth": 100.0, "round_trip": 0.02, "age": 30.0}]}
    assert daemon.heard == [("/v1/sites/links", "Bearer secret", sent)]


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_what_the_daemon_does_not_take_is_sent_again(daemon: Daemon, status: int) -> None:
    links = SiteLinks("north", daemon.url, "secret")
    links.note("east", Link(100.0, 0.02, 1 << 20))
    daemon.status = status
    assert not links.send()
    daemon.status = 200
    assert links.send()
    assert [body["links"][0]["site"] for _, _, body in daemon.heard] == ["east", "east"]


def test_agents_of_three_sites_measure_each_other_and_not_their_own_links(daemon: Daemon, tmp_path: Path) -> None:
    sites = ("east", "north", "west")
    places = {site: f"127.0.0.1:{port}" for site, port in zip(sites, free_ports(3), strict=True)}
    agents = []
    with ExitStack() as stack:
        for site, place in places.items():
            settings = {
                "node": f"{site}-n1", "interval": 0.2, "interface": "lo",
                "sites_daemon": daemon.url, "sites_token": f"token of {site}",
                "spool": tmp_path / f"{site}.db", "probe_budget": 0, "site": site, "sites": places,
                "sites_listen": place, "sites_period": 1.0, "sites_secret": "sixteen bytes of secret",
                "sites_transfer": 1 << 20,
            }  # fmt: skip
            agents.append(Agent(Settings.model_validate(settings)))
            thread = threading.Thread(target=agents[-1].run, daemon=True)
            thread.start()
            stack.callback(thread.join, 20)
            stack.callback(agents[-1].stop)
        wanted = {(one, other) for one in places for other in places if one != other}
        until = time.monotonic() + 120.0
        found: dict[tuple[str, str], Any] = {}
        while set(found) != wanted and time.monotonic() < until:
            time.sleep(0.1)
            for path, whose, body in [*daemon.heard]:
                if path == "/v1/sites/links":
                    assert whose == f"Bearer token of {body['site']}"
                    found |= {(body["site"], each["site"]): each for each in body["links"]}
    assert set(found) == wanted
    assert min(each["bandwidth"] for each in found.values()) > 1.0
    assert max(each["round_trip"] for each in found.values()) < 1.0
    assert [agent._link.factor for agent in agents] == [1.0, 1.0, 1.0]


def test_sites_without_a_name_of_their_own_or_a_secret_are_refused(tmp_path: Path) -> None:
    own = {"spool": tmp_path / "spool.db", "daemon": "http://127.0.0.1:1", "interface": "lo"}
    sites = {"sites": {"east": "127.0.0.1:7072"}, "sites_listen": "127.0.0.1:0"}
    with pytest.raises(ValueError, match="sites_secret has 0 bytes"):
        Agent(Settings.model_validate(own | sites | {"site": "east"}))
    with pytest.raises(ValueError, match="west is no member"):
        Agent(Settings.model_validate(own | sites | {"site": "west", "sites_secret": "sixteen bytes of secret"}))
