"""Links to sites: what probes find, scaled by what transfers get of it, with its age, and kept over a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metasched.sites.data import transfers
from metasched.sites.links import STALE, Probe, SiteLink, site_link
from metasched.sites.question import SitesQuestion
from metasched.sites.sent_jobs import SentJobs
from metasched.store.database.store import Store
from tests.sites.answers import answer, placement
from tests.sites.test_grid import Clock, Daemons, grid, names
from tests.sites.test_kept import PLACES


def test_probes_count_before_what_is_configured_and_are_shown_with_their_age() -> None:
    clock = Clock()
    sites = grid(Daemons(east=answer(placement())), ["east"], clock, bandwidth=100.0)
    assert sites.links() == {"east": SiteLink(100.0)}
    assert sites.measured("home", {"east": Probe(800.0, 0.02, 5.0), "nowhere": Probe(1.0, 1.0, 0.0)}) == ["nowhere"]
    clock.now += 60.0
    assert sites.links() == {"east": SiteLink(800.0, 0.02, 65.0, "probes")}
    found = transfers(["east"], 10.0, sites.links())["east"]
    assert found.seconds == pytest.approx(100.02)
    assert found.how == "10 GB at 800 Mbit/s, measured 65.0 s ago"
    (status,) = sites.status()
    assert (status["bandwidth"], status["round_trip"], status["bandwidth_age"]) == (800.0, 0.02, 65.0)


def test_a_slower_link_sends_jobs_with_data_elsewhere() -> None:
    daemons = Daemons(east=answer(placement(time=100.0)), west=answer(placement(time=110.0)))
    sites = grid(daemons, ["east", "west"], bandwidth=1000.0)
    question = SitesQuestion("cg", 900.0, data=10.0)
    assert names(sites, question) == ["east", "west"]
    sites.measured("home", {"east": Probe(200.0, 0.02, 0.0), "west": Probe(900.0, 0.02, 0.0)})
    assert names(sites, question) == ["west", "east"]


def brought(jobs: SentJobs, site: str, width: float) -> None:
    """A transfer that got a bandwidth."""
    places = [each for each in PLACES if each.offer.site == site]
    jobs.submitted(jobs.send(places).uid, site, "7", gigabytes=1.0, seconds=8000.0 / width)


def test_what_transfers_get_of_the_probes_counts_from_then_on() -> None:
    clock = Clock()
    jobs = SentJobs(clock)
    jobs.measured({"east": Probe(1000.0, 0.02, 0.0)})
    brought(jobs, "east", 400.0)
    clock.now += 100.0
    jobs.measured({"east": Probe(1000.0, 0.02, 0.0)})
    assert jobs.links({"east": None})["east"].bandwidth == pytest.approx(400.0)
    clock.now += STALE + 1.0
    assert jobs.links({"east": None})["east"] == SiteLink(pytest.approx(400.0), 0.02, None, "transfers")
    brought(jobs, "west", 50.0)
    assert jobs.links({"west": 900.0})["west"] == SiteLink(50.0, None, None, "transfers")


def test_an_older_measurement_than_the_last_changes_nothing_and_single_ones_little() -> None:
    clock = Clock()
    jobs = SentJobs(clock)
    jobs.measured({"east": Probe(1000.0, 0.02, 10.0)})
    jobs.measured({"east": Probe(1.0, 9.0, 20.0)})
    assert jobs.links({"east": None})["east"].bandwidth == 1000.0
    clock.now += 60.0
    jobs.measured({"east": Probe(100.0, 0.02, 0.0)})
    assert 700.0 < jobs.links({"east": None})["east"].bandwidth < 1000.0


def test_what_was_measured_outlives_the_daemon(tmp_path: Path) -> None:
    with Store.open(tmp_path / "grid.db") as store:
        first = SentJobs(lambda: 50.0, store.sent_jobs, lambda: 1.7e9)
        first.measured({"east": Probe(800.0, 0.02, 5.0)})
        again = SentJobs(lambda: 3.0, store.sent_jobs, lambda: 1.7e9 + 30.0)
        again.restore()
        link = again.links({"east": None})["east"]
    assert (link.bandwidth, link.round_trip, link.age) == (800.0, 0.02, pytest.approx(35.0, abs=1e-3))


@pytest.mark.parametrize(
    ("known", "source", "bandwidth"),
    [
        ((None, None, None), None, None),
        ((500.0, None, None), "configured", 500.0),
        ((500.0, 300.0, None), "transfers", 300.0),
        ((500.0, 300.0, Probe(800.0, 0.02, 3600.0)), "probes", 800.0),
        ((500.0, 300.0, Probe(800.0, 0.02, 3600.5), 0.5), "transfers", 300.0),
        ((500.0, None, Probe(800.0, 0.02, 3600.5), 0.5), "configured", 500.0),
        ((None, None, Probe(800.0, 0.02, 3600.5), 0.5), "probes", 400.0),
        ((500.0, 300.0, Probe(800.0, 0.02, 3600.5), 0.5, Probe(700.0, 0.03, 60.0)), "routes", 350.0),
        ((500.0, None, None, None, Probe(700.0, 0.03, 60.0)), "routes", 700.0),
    ],
)
def test_what_says_how_fast_a_link_is(known: tuple[Any, ...], source: str | None, bandwidth: float | None) -> None:
    found = site_link(*known)
    assert (found and found.source, found and found.bandwidth) == (source, bandwidth)
