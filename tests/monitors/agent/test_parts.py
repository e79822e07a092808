"""Which parts an agent is made of, by its settings, and what each is told of the others: by stand-ins that note it."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monitors.agent import agent as module
from monitors.agent.agent import Agent
from monitors.agent.settings import Settings
from monitors.sensors.limits import CpuLimit, cpu_limit
from monitors.sensors.network.probe import Link
from monitors.sources.contract import Readings, Sample

SECRET = "sixteen bytes of secret"
OF_NODES = {"probe_listen": "127.0.0.1:7071", "probe_secret": SECRET, "members": {"n1": "a:1", "n2": "b:2"}}
OF_SITES = {
    "site": "east", "sites": {"east": "e:1", "west": "w:2"}, "sites_listen": "127.0.0.1:7072", "sites_secret": SECRET,
}  # fmt: skip


class Parts:
    """Stands for all parts of agents: notes what each was made with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.links: list[Any] = []
        for name in ("Clique", "ProbeServer", "BandwidthProbe", "SampleServer", "SiteLinks", "Sender", "ThisHost",
                     "ProbedCpu", "ProbeSchedule", "CorrectedLink", "DelayFile"):  # fmt: skip
            monkeypatch.setattr(module, name, self.making(name))

    def making(self, name: str) -> Any:
        def make(*given: Any, **named: Any) -> Any:
            self.made.append((name, *given, *sorted(named.items())))
            part = SimpleNamespace(name=name, take="take", note=f"note of {name}", read=f"read of {name}")
            if name == "CorrectedLink":
                part.learned = []
                part.learn = lambda *probe: part.learned.append(probe)
            return part

        return make

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [given for kind, *given in self.made if kind == name]  # type: ignore[misc]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(monkeypatch)


def made(tmp_path: Path, source: Any = None, **settings: Any) -> Agent:
    own = {"spool": tmp_path / "spool.db", "interface": "eth7", "node": "n1"}
    return Agent(Settings.model_validate(own | settings), source)


def test_an_agent_alone_has_sensors_of_this_host_and_nobody_to_send_to(parts: Parts, tmp_path: Path) -> None:
    made(tmp_path, processors=3, probe_budget=0.01)
    names = [name for name, *_ in parts.made]
    assert names == ["CorrectedLink", "ProbeSchedule", "ProbedCpu", "ThisHost"]
    assert parts.of("CorrectedLink") == [["eth7"]]
    assert parts.of("ProbeSchedule") == [[("budget", 0.01)]]
    [[count, (_, limit), (_, probing), (_, schedule)]] = parts.of("ProbedCpu")
    assert (count, limit, probing, schedule.name) == (3, cpu_limit(own=False), True, "ProbeSchedule")
    assert parts.of("ThisHost") == [["read of ProbedCpu", "read of CorrectedLink", "n1"]]


def test_without_a_budget_nothing_is_probed_and_without_an_interface_the_outward_one_is_read(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, probe_budget=0, interface=None)
    assert [each[2:] for each in parts.of("ProbedCpu")] == [[("probing", False), ("schedule", None)]]
    assert parts.of("CorrectedLink") == [[None]]


@pytest.mark.parametrize(
    ("processors", "own", "above", "probing"),
    [(1, 0.2, math.inf, False), (4, 2.0, math.inf, False), (4, 2.0, 2.0, True), (1, 2.0, math.inf, True)],
)
def test_a_quota_of_the_agents_own_is_none_of_the_node_and_nothing_is_probed_under_it(
    processors: int, own: float, above: float, probing: bool, parts: Parts, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    quotas = above, min(own, above)

    def limit(*, own: bool = True) -> CpuLimit:
        return CpuLimit((0, 1, 2, 3), quotas[own], None)

    monkeypatch.setattr(module, "cpu_limit", limit)
    made(tmp_path, processors=processors)
    assert parts.of("ProbedCpu")[0][1:3] == [("limit", limit(own=False)), ("probing", probing)]
    assert ("no CPU probes" in caplog.text) is not probing


def test_what_waits_on_disk_and_in_memory_is_sent_to_the_daemon(parts: Parts, tmp_path: Path) -> None:
    found = made(tmp_path, source="source", daemon="http://head:1", token="word", spool_samples=2000)
    [[disk, *to], [memory, *also]] = parts.of("Sender")
    assert to == also == ["http://head:1", "word"]
    assert (disk.capacity, memory.capacity) == (2000, 10_000)
    assert (disk, memory) == (found._spool, found._memory)
    assert not parts.of("ThisHost")


def test_a_sample_is_served_where_an_address_is_given(parts: Parts, tmp_path: Path) -> None:
    found = made(tmp_path, listen="127.0.0.1:7070", token="word")
    [[place, token, latest]] = parts.of("SampleServer")
    assert (place, token, latest()) == (("127.0.0.1", 7070), "word", None)
    found._source = SimpleNamespace(read=lambda: Readings((Sample("n1", 1.0, 0.5, 90.0), Sample("n1", 2.0, 0.5, 9.0))))
    found.sample()
    assert latest() == Sample("n1", 2.0, 0.5, 9.0)
    assert len(found._spool) == 2


def test_members_are_probed_and_what_is_found_corrects_the_link_and_is_written_down(
    parts: Parts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = made(tmp_path, **OF_NODES, probe_period=7.0, delays=tmp_path / "delays.csv")
    [[node, places, probe, secret, note, period]] = parts.of("Clique")
    assert (node, places, probe.name, secret, period) == (
        "n1", {"n1": ("a", 1), "n2": ("b", 2)}, "BandwidthProbe", SECRET.encode(), 7.0,
    )  # fmt: skip
    assert parts.of("BandwidthProbe") == [[SECRET.encode()]]
    assert parts.of("ProbeServer") == [[("127.0.0.1", 7071), SECRET.encode(), ("take_token", "take")]]
    assert parts.of("DelayFile") == [[tmp_path / "delays.csv", "n1"]]
    noted: list[Any] = []
    found._delays = SimpleNamespace(note=lambda *what: noted.append(what))  # type: ignore[assignment]
    note("n2", Link(93.5, 0.002, 7))
    note("n2", Link(0.0, 0.003, 7))  # of a transfer in one piece nothing is known but the round trip
    assert found._link.learned == [(93.5, 7)]  # type: ignore[attr-defined]
    assert noted == [("n2", 0.002), ("n2", 0.003)]

    def full(*_: object) -> None:
        raise OSError("no space")

    found._delays = SimpleNamespace(note=full)  # type: ignore[assignment]
    note("n2", Link(94.0, 0.002, 7))
    assert caplog.messages == ["the delay to n2 is not recorded: no space"]


@pytest.mark.parametrize("left_out", ["probe_listen", "members"])
def test_without_members_or_an_address_there_are_no_probes(left_out: str, parts: Parts, tmp_path: Path) -> None:
    made(tmp_path, **{name: value for name, value in OF_NODES.items() if name != left_out})
    assert not parts.of("Clique")


@pytest.mark.parametrize(
    ("more", "reported_to"),
    [
        ({"daemon": "http://head:1", "token": "w", "sites_token": "s"}, ["east", "http://head:1", "s"]),
        ({"daemon": "http://h:1", "sites_daemon": "http://grid:2", "sites_token": "s"}, ["east", "http://grid:2", "s"]),
        ({"sites_daemon": "http://grid:2", "sites_token": "s"}, ["east", "http://grid:2", "s"]),
        ({"daemon": "http://head:1", "token": "w"}, None),
        ({"sites_token": "s"}, None),
    ],
)  # fmt: skip
def test_links_between_sites_are_probed_and_reported_with_a_token_of_the_site(
    more: dict[str, str], reported_to: list[str] | None, parts: Parts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = made(tmp_path, **OF_SITES, **more, sites_transfer=1 << 20, sites_period=9.0)
    assert parts.of("SiteLinks") == ([reported_to] if reported_to else [])
    [[site, places, _, secret, note, period]] = parts.of("Clique")
    assert (site, places, secret, period) == ("east", {"east": ("e", 1), "west": ("w", 2)}, SECRET.encode(), 9.0)
    assert parts.of("BandwidthProbe") == [[SECRET.encode(), ("largest", 1 << 20)]]
    assert parts.of("ProbeServer") == [[("127.0.0.1", 7072), SECRET.encode(), ("take_token", "take")]]
    if reported_to:
        assert note == "note of SiteLinks"
    else:
        with caplog.at_level(logging.DEBUG):
            note("west", Link(93.46, 0.0021, 7))
        assert caplog.messages == ["site west: 93.5 Mbit/s, round trip 2.10 ms"]
    assert found._link.learned == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "of"), [("probe_secret", OF_NODES), ("sites_secret", OF_SITES)])
def test_a_secret_has_sixteen_bytes_at_least(kind: str, of: dict[str, Any], parts: Parts, tmp_path: Path) -> None:
    def given(secret: str) -> None:
        made(tmp_path, **of | {kind: secret, "spool": tmp_path / f"{len(secret)}.db"})

    given("x" * 16)
    with pytest.raises(ValueError, match=rf"^{kind} has 15 bytes, expected at least 16 before probes are answered$"):
        given("x" * 15)
    given("\u20ac" * 6)  # bytes count, not letters


def test_all_parts_are_scheduled_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def noting(part: str, *verbs: str) -> Any:
        return SimpleNamespace(**{verb: lambda verb=verb, **named: told.append(f"{part} {verb}") for verb in verbs})

    found = made(tmp_path, interval=8.0, interface="lo", daemon="http://head:1", token="w", probe_budget=0)
    schedule: Any = noting("schedule", "stop")
    schedule.every = lambda seconds, work, spread=0.0: told.append((work.__name__, seconds, spread))
    found._schedule, found._senders = schedule, [noting("disk", "send"), noting("memory", "send")]
    found._server = noting("server", "start", "shutdown", "server_close")
    found._site_links = noting("links", "send")
    found._cliques = [(noting("clique", "run", "stop"), noting("prober", "start", "shutdown", "server_close"))]
    monkeypatch.setattr(module.threading, "Thread", lambda target, daemon: SimpleNamespace(start=target))
    found.stop()
    found.run()
    assert told == [
        ("sample", 8.0, 0.0), ("send", 8.0, 2.0), "server start", "prober start", "clique run", "schedule stop",
        "server shutdown", "server server_close", "prober shutdown", "prober server_close", "clique stop",
        "disk send", "memory send", "links send",
    ]  # fmt: skip
