"""Links between sites whose truth is known: found from measured paths, told apart or not, and used where they help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from metasched.service.app import make_app
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.sites.grid import Sites
from metasched.sites.links import Probe, SiteLink
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import Routing, SiteTable
from metasched.sites.site_paths import EXPLAINED, WINDOW
from tests.service.daemons import headers_for, running
from tests.sites.answers import answer, placement
from tests.sites.test_grid import Clock, Daemons

#: How many measurements are averaged was chosen on seeds 101 to 120; these judge.
SEEDS = range(201, 221)
#: Three regions on a core, with three, three and two sites.
REGION = {name: number // 3 for number, name in enumerate(("home", "a", "b", "c", "d", "e", "f", "g"))}
NAMES = tuple(REGION)
OTHERS = NAMES[1:]


def way(one: str, other: str) -> list[str]:
    """The links between two sites: their own, and those of their regions to the core where these differ."""
    apart = [f"core {REGION[one]}", f"core {REGION[other]}"] if REGION[one] != REGION[other] else []
    return [f"access {one}", *apart, f"access {other}"]


ROUTING: dict[str, Any] = {
    "here": "home",
    "route": [{"between": list(pair), "links": way(*pair)} for pair in combinations(NAMES, 2)],
}


class Network:
    """Links with delays (s) and times per word (s/Mbit) drawn from a seed, and probes of whole paths under noise."""

    def __init__(self, seed: int, noise: float) -> None:
        self.random, self.noise = np.random.default_rng(seed), noise
        links = sorted({link for one, other in combinations(NAMES, 2) for link in way(one, other)})
        self.delay = {link: float(self.random.uniform(0.005, 0.02)) for link in links}
        self.word = {link: float(1.0 / self.random.uniform(500.0, 2000.0)) for link in links}

    def probe(self, one: str, other: str, age: float) -> Probe:
        noise = self.random.normal(1.0, self.noise, 2)
        word, trip = (sum(each[link] for link in way(one, other)) for each in (self.word, self.delay))
        return Probe(1.0 / (word * noise[0]), trip * noise[1], age)

    def errors(self, links: list[dict[str, Any]]) -> list[float]:
        """How far bandwidths and round trips of identifiable links are off."""
        found = []
        for each in links:
            if each["identifiable"]:
                word, trip = (sum(known[link] for link in each["links"]) for known in (self.word, self.delay))
                found += [abs(1.0 / each["bandwidth"] - word) / word, abs(each["round_trip"] - trip) / trip]
        return found


def sites(clock: Clock | None = None, routing: dict[str, Any] = ROUTING, **answers: Any) -> Sites:
    """The grid's sites, whose daemons answer as told."""
    tables = [SiteTable(name=name, url=f"http://{name}.invalid", deadline=5.0) for name in OTHERS]
    known = {name: RuntimeError("the daemon does not answer") for name in OTHERS} | answers
    return Sites(tables, "0.1.0", ask=Daemons(**known), now=clock or Clock(), routing=Routing.model_validate(routing))


def report(grid: Sites, network: Network, *, without: set[frozenset[str]] = frozenset(), times: int = 10) -> None:  # type: ignore[assignment]
    """Let the agent of each site report what it measured of the paths to the others, every ten minutes."""
    for one, other in permutations(NAMES, 2):
        if frozenset((one, other)) not in without:
            for number in range(times):
                grid.measured(one, {other: network.probe(one, other, 600.0 * number)})


@pytest.mark.parametrize("seed", SEEDS)
def test_identifiable_links_are_known_within_a_tenth_under_noise_of_a_twentieth(seed: int) -> None:
    network, grid = Network(seed, 0.05), sites()
    report(grid, network)
    found = grid.paths.as_document()
    assert found is not None
    assert len(found["links"]) == len(network.delay)
    assert all(each["identifiable"] for each in found["links"])
    assert max(network.errors(found["links"])) <= 0.10
    assert found["residual"]["bandwidth"] < 0.05
    assert found["residual"]["round_trip"] < 0.05


def test_a_path_that_was_not_probed_follows_from_the_links_on_it_and_decides() -> None:
    network, grid = Network(101, 0.0), sites(a=answer(placement(time=100.0)), c=answer(placement(time=110.0)))
    report(grid, network, without={frozenset(("home", "c"))})
    probe = network.probe("home", "c", 0.0)
    link = grid.links()["c"]
    assert (link.source, link.bandwidth) == ("routes", pytest.approx(probe.bandwidth))
    assert link.round_trip == pytest.approx(probe.round_trip)
    # The access of c is made slow enough to send data elsewhere, though nobody measured from here to there.
    question = SitesQuestion("cg", 900.0, data=10.0)
    network.word["access a"], network.word["access c"] = 1 / 400.0, 1 / 5000.0
    slower = sites(a=answer(placement(time=100.0)), c=answer(placement(time=110.0)))
    report(slower, network, without={frozenset(("home", "c"))})
    best = slower.rank(question).places[0]
    assert best.offer.site == "c"
    assert "as the links on the way show" in best.transfer.how


def test_the_newest_probe_of_the_path_itself_counts_first_and_old_ones_show_nothing() -> None:
    clock = Clock()
    network, grid = Network(102, 0.0), sites(clock)
    report(grid, network)
    assert {link.source for link in grid.links().values()} == {"probes"}
    clock.now += WINDOW + 1.0
    assert grid.paths.as_document() is None
    grid.measured("home", {"a": Probe(70.0, 0.01, 0.0)})
    assert grid.links()["a"].source == "probes"
    (chain,) = grid.paths.as_document()["links"]  # type: ignore[index]
    assert (chain["links"], chain["bandwidth"], chain["identifiable"]) == (
        ["access home", "access a"], pytest.approx(70.0), True,
    )  # fmt: skip


def test_links_that_no_path_tells_apart_are_said_to_be_unknown_and_are_not_used() -> None:
    grid = sites()
    for one, other in (("a", "b"), ("c", "d")):
        grid.measured(one, {other: Probe(500.0, 0.02, 0.0)})
    found = grid.paths.as_document()
    assert found is not None
    assert [each["links"] for each in found["links"]] == [["access a", "access b"], ["access c", "access d"]]
    assert "access home" in found["uncrossed"]
    assert grid.links() == {}
    grid.measured("b", {"c": Probe(500.0, 0.02, 0.0)})
    found = grid.paths.as_document()
    assert found is not None
    assert not any(each["identifiable"] for each in found["links"])


def test_paths_whose_times_do_not_add_up_are_shown_and_lead_to_nothing() -> None:
    routes = [{"between": list(pair), "links": sorted(pair)} for pair in combinations(("home", "a", "b", "c"), 2)]
    grid = sites(routing={"here": "home", "route": routes})
    widths = {("home", "a"): 1.0, ("a", "b"): 1000.0, ("b", "c"): 1.0, ("home", "b"): 1000.0, ("a", "c"): 1000.0}
    for (one, other), width in widths.items():
        grid.measured(one, {other: Probe(width, 0.02, 0.0)})
    found = grid.paths.as_document()
    assert found is not None
    assert found["residual"]["bandwidth"] > EXPLAINED
    assert not found["explained"]
    assert "c" not in grid.links()


def test_the_same_report_sent_again_counts_once_and_paths_without_a_route_not_at_all() -> None:
    grid = sites()
    for width in (100.0, 900.0, 900.0):
        grid.measured("a", {"b": Probe(width, 0.02, 5.0)})
    (chain,) = grid.paths.as_document()["links"]  # type: ignore[index]
    assert chain["bandwidth"] == pytest.approx(100.0)
    assert grid.measured("a", {"nowhere": Probe(1.0, 1.0, 0.0), "b": Probe(1.0, 1.0, 5.0)}) == ["nowhere"]
    assert grid.measured("nowhere", {"a": Probe(1.0, 1.0, 0.0)}) == ["a"]
    assert grid.links() == {}
    assert grid.measured("home", {"a": Probe(80.0, 0.02, 0.0)}) == []
    assert grid.links()["a"] == SiteLink(80.0, 0.02, 0.0, "probes")


@pytest.mark.parametrize(
    ("routing", "why"),
    [
        ({"here": "home", "route": [{"between": ["home", "x"], "links": ["l"]}]}, "a route leads to x"),
        ({"here": "home", "route": [{"between": ["home", "home"], "links": ["l"]}]}, "home and itself"),
        ({"here": "home", "route": [{"between": ["home", "a"], "links": ["l", "l"]}]}, "crosses a link twice"),
        ({"here": "home", "route": [{"between": ["home", "a"], "links": []}]}, "at least 1 item"),
        ({"here": "home", "route": [{"between": ["home", "a"], "links": ["\x1b[2J"]}]}, "pattern"),
        ({"route": [{"between": ["a", "b"], "links": ["l"]}]}, "here is missing"),
        ({"here": "home", "route": 2 * [{"between": ["home", "a"], "links": ["l"]}]}, "two routes between home and a"),
    ],
)
def test_routes_that_cannot_be_are_refused(routing: dict[str, Any], why: str) -> None:
    tables = [{"name": name, "url": f"/{name}.sock"} for name in OTHERS]
    with pytest.raises(ValidationError, match=why):
        Configuration.model_validate({"site": tables, "routing": routing})


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    tables = [{"name": name, "url": f"/nowhere/{name}.sock"} for name in OTHERS]
    with running(tmp_path, learned=False, site=tables, routing=ROUTING) as made:
        yield made


def test_the_daemon_finds_the_links_from_what_the_agents_of_all_sites_report(daemon: Daemon) -> None:
    """By HTTP, as the agents send it: each site's agent with the token of its site."""
    network, client = Network(221, 0.05), TestClient(make_app(daemon))
    tokens = {name: daemon.store.tokens.add(f"links of {name}", "site", node=name) for name in NAMES}
    reader = headers_for(daemon, "reader", "reader")
    for name, secret in tokens.items():
        for number in range(10):
            links = []
            # The agent here has not reached c.
            for other in NAMES:
                if other != name and {name, other} != {"home", "c"}:
                    probe = network.probe(name, other, 600.0 * number)
                    links.append({"site": other, "bandwidth": probe.bandwidth, "round_trip": probe.round_trip,
                                  "age": probe.age})  # fmt: skip
            done = client.post(
                "/v1/sites/links", json={"site": name, "links": links}, headers={"Authorization": f"Bearer {secret}"}
            )
            assert done.json() == {"taken": len(links), "unknown": []}
    shown = client.get("/v1/sites", headers=reader).json()
    assert max(network.errors(shown["links"]["links"])) <= 0.10
    assert shown["links"]["explained"]
    assert all(each["identifiable"] for each in shown["links"]["links"])
    by_name = {each["site"]: each for each in shown["sites"]}
    assert {name: each["bandwidth_source"] for name, each in by_name.items()} == {
        name: "routes" if name == "c" else "probes" for name in OTHERS
    }
    true = network.probe("home", "c", 0.0)
    assert by_name["c"]["bandwidth"] == pytest.approx(true.bandwidth, rel=0.15)
    json.dumps(shown, allow_nan=False)
