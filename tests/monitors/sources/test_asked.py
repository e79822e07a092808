"""What each source is asked, word by word, and what is made of the answers at their limits."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from monitors.sensors.cpu_views import utilisation_view
from monitors.sources import bounded_json, power_history, prometheus_server, slurm
from monitors.sources.bounded_json import fetch
from monitors.sources.contract import Readings, Sample
from monitors.sources.power_history import PowerHistory, _added, _of_counter
from monitors.sources.prometheus import Prometheus
from monitors.sources.remote_agent import RemoteAgent
from monitors.sources.settings import SourceTable
from monitors.sources.slurm import Slurm, parsed
from monitors.sources.this_host import ThisHost

OUTSIDE = 'device!~"lo|veth.*|docker.*|br-.*|virbr.*|cni.*|flannel.*|cali.*"'


def test_node_exporter_is_asked_for_rates_over_the_window_by_the_label() -> None:
    some = 'job="node",host!=""'
    received, sent = (
        f"rate(node_network_{way}_bytes_total{{{some},{OUTSIDE}}}[90s])" for way in ("receive", "transmit")
    )
    assert Prometheus("http://p", label="host", match='job="node"', window=90.7)._questions() == {
        "idle": f'sum by (host) (rate(node_cpu_seconds_total{{{some},mode=~"idle|iowait"}}[90s]))',
        "processors": f'count by (host) (node_cpu_seconds_total{{{some},mode="idle"}})',
        "runnable": f"max by (host) (node_procs_running{{{some}}})",
        "time": f'max by (host) (timestamp(node_cpu_seconds_total{{{some},mode="idle"}}))',
        "spare": f"max by (host) ((node_network_speed_bytes{{{some},{OUTSIDE}}} > 0) - on (host, device) "
        f"({received} > {sent} or {sent}))",
    }
    assert "[1s]" in Prometheus("http://p", window=0.5)._questions()["idle"]


@pytest.mark.parametrize(
    ("values", "cpu", "bandwidth"),
    [
        ({"idle": 3.0, "processors": 4.0, "runnable": 3.0, "spare": 125e6}, utilisation_view(3.0, 1.0, 2.0), 1000.0),
        ({"idle": 0.5, "processors": 1.0, "runnable": 4.0, "spare": 0.0}, utilisation_view(0.5, 0.5, 3.0), 0.0),
        ({"idle": 9.0, "processors": 4.0, "runnable": 0.0, "spare": -7.0}, 1.0, 0.0),
        ({"idle": -1.0, "processors": 2.0, "runnable": 2.0, "spare": None}, utilisation_view(0.0, 2.0, 1.0), math.nan),
        ({"idle": 0.0, "processors": 0.0, "runnable": None, "spare": None}, utilisation_view(0.0, 1.0, 0.0), math.nan),
    ],
)
def test_a_sample_is_the_view_of_what_is_idle_beside_others_than_the_exporter(
    values: dict[str, float | None], cpu: float, bandwidth: float
) -> None:
    found = Prometheus("http://p")._sample("n1:9100", {"time": 7.0, **values})
    assert (found.node, found.time, found.available_cpu) == ("n1", 7.0, pytest.approx(cpu))
    assert found.available_bandwidth == pytest.approx(bandwidth, nan_ok=True)


def test_a_server_is_asked_for_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def fetched(url: str, **how: Any) -> Any:
        asked.append((url, how))
        return {"data": {"result": [{"metric": {"instance": 7}, "value": [0, "1"]}]}}

    monkeypatch.setattr(prometheus_server, "fetch", fetched)
    monkeypatch.setattr(prometheus_server, "time", SimpleNamespace(monotonic=lambda: 100.0))
    server = prometheus_server.PrometheusServer("http://p/prefix/", token_file=Path("token"))
    found = [*server.ask("up", 103.5, time="7"), *server.ask("up", 90.0)]
    assert [seen for seen, _ in found] == ["7", "7"]
    url, file = "http://p/prefix/api/v1/query", Path("token")
    assert asked == [
        (url, {"deadline": 3.5, "token_file": file, "parameters": {"query": "up", "time": "7"}}),
        (url, {"deadline": 0.001, "token_file": file, "parameters": {"query": "up"}}),
    ]


@pytest.mark.parametrize(
    ("start", "end", "now", "span", "upto"),
    [
        (1000.0, 1100.0, 5000.0, 220, "1160.000"),  # a window before the period and one after it
        (1000.0, 1100.5, 5000.0, 221, "1160.500"),
        (1000.0, 1100.0, 1110.25, 171, "1110.250"),  # nothing is known of what is to come
        (1000.0, 1100.0, 900.0, 1, "900.000"),
    ],
)
def test_the_history_of_power_is_asked_for_beyond_both_ends_of_the_period(
    start: float, end: float, now: float, span: int, upto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    values = [[1.0, "5"], [2.0, "NaN"], [3.0, "7.5"]]

    class History(PowerHistory):
        def ask(self, query: str, deadline: float, **parameters: str) -> Any:
            asked.append((query, deadline, parameters))
            yield "n1:9100", {"metric": {"index": "0"}, "values": values}
            yield "n1:9100", {"metric": {"index": "1"}, "values": []}

    monkeypatch.setattr(power_history, "time", SimpleNamespace(time=lambda: now, monotonic=lambda: 50.0))
    found = History("http://p", window=60.0)._series("watts", start, end, 55.0)
    assert asked == [(f'watts{{instance!=""}}[{span}s]', 55.0, {"time": upto})]
    assert [(at.tolist(), value.tolist()) for at, value in found["n1"]] == [([1.0, 3.0], [5.0, 7.5]), ([], [])]


@pytest.mark.parametrize(
    ("at", "joules", "watts"),
    [
        ([0.0, 10.0, 20.0], [0.0, 1000.0, 1500.0], [100.0, 50.0]),
        ([0.0, 1.0, 2.0, 3.0], [0.0, 5000.0, 10_001.0, 10_501.0], [5000.0, 2750.0, 500.0]),  # 5,001 W have jumped
        ([0.0, 1.0, 2.0, 3.0], [50.0, 150.0, 20.0, 320.0], [100.0, 200.0, 300.0]),  # it went back in the middle
        ([0.0, 1.0, 2.0], [9.0, 9.0, 109.0], [0.0, 100.0]),
        ([0.0, 1.0, 1.0], [0.0, 1.0, 2.0], None),
        ([0.0], [0.0], None),
        ([0.0, 1.0], [5.0, 0.0], None),
    ],
)
def test_the_power_of_a_counter_leaves_out_what_cannot_be(
    at: list[float], joules: list[float], watts: list[float] | None
) -> None:
    found = _of_counter(np.array(at), np.array(joules))
    assert (found is None) == (watts is None)
    if found is not None and watts is not None:
        assert (found[0].tolist(), found[1].tolist()) == (at, pytest.approx(watts))


def test_counters_of_a_node_are_added_over_the_time_that_all_of_them_cover() -> None:
    one = np.array([0.0, 10.0, 20.0, 30.0]), np.array([100.0, 200.0, 300.0])
    other = np.array([5.0, 15.0, 20.0, 40.0]), np.array([1.0, 2.0, 4.0])
    found = _added("package", [one, other])
    assert found is not None
    assert (found.covers, found.edges.tolist()) == ("package", [5.0, 10.0, 15.0, 20.0, 30.0])
    assert found.watts.tolist() == [101.0, 201.0, 202.0, 304.0]
    assert _added("package", [one, (np.array([30.0, 40.0]), np.array([1.0]))]) is None


def test_a_table_is_asked_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "kind": "prometheus", "url": "http://p", "label": "host", "names": {"a": "n1"}, "match": "x", "window": 30,
        "token_file": "token", "timeout": 2, "prefix": "w-",
    }  # fmt: skip
    for power in (False, True):
        read = SourceTable.model_validate(table | {"power": power})
        history = read.power_history()
        assert (history is not None) is power
        for source in filter(None, (read.source(), history)):
            assert vars(source) == {
                "url": "http://p", "label": "host", "names": {"a": "n1"}, "match": "x", "window": 30.0,
                "token_file": Path("token"), "timeout": 2.0, "prefix": "w-",
            }  # fmt: skip
    asked: list[Any] = []
    monkeypatch.setattr(slurm, "run", lambda *words, **how: asked.append((words, how)) or "[]")
    for more in ({}, {"configuration": "/etc/slurm.conf", "timeout": 9}):
        SourceTable.model_validate({"kind": "slurm", **more}).source().read()
    assert asked == [
        (("sinfo", "--json"), {"environment": {}, "timeout": 5.0}),
        (("sinfo", "--json"), {"environment": {"SLURM_CONF": "/etc/slurm.conf"}, "timeout": 9.0}),
    ]


def test_an_agent_is_asked_with_its_token_and_answers_with_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    answer = {"node": "n1", "time": 7, "available_cpu": 0.5, "available_bandwidth": 90}

    def fetched(url: str, **how: Any) -> Any:
        asked.append((url, how))
        return answer

    monkeypatch.setattr("monitors.sources.remote_agent.fetch", fetched)
    read = SourceTable.model_validate(
        {"kind": "agent", "url": "http://n1:7/", "token_file": "t", "timeout": 3}
    ).source()
    assert (read.name, read.read()) == ("agent http://n1:7", Readings((Sample("n1", 7.0, 0.5, 90.0),)))
    assert asked == [("http://n1:7/sample", {"deadline": 3.0, "token_file": Path("t")})]
    del answer["time"]
    assert RemoteAgent("http://n1").read() == Readings(fault="'time'")


def test_an_answer_is_read_for_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    answers: list[Any] = [SimpleNamespace(status=200, body=b'{"a": 1}'), SimpleNamespace(status=503, body=b"x" * 300)]

    def exchanged(*given: Any, **how: Any) -> Any:
        asked.append((given, how))
        return answers.pop(0)

    monkeypatch.setattr(bounded_json, "exchange", exchanged)
    monkeypatch.setattr(bounded_json, "time", SimpleNamespace(monotonic=lambda: 100.0))
    assert fetch("http://p", deadline=2.5, token_file=None, parameters={"a": "b c"}) == {"a": 1}
    assert asked == [(("http://p", "GET", "?a=b+c"), {"headers": {}, "ends": 102.5, "most": 16_777_216})]
    with pytest.raises(ValueError, match=rf"^HTTP 503: {'x' * 200}$"):
        fetch("http://p", deadline=2.5, token_file=None)


@pytest.mark.parametrize(
    ("load", "cpus", "share"),
    [
        (0, 4, 1.0), (100, 1, 0.5), (300, 2, 0.5), (0xFFFFFFFB, 1, 1.0 / (1.0 + 42949672.91)), (0xFFFFFFFC, 1, None),
        (-1, 1, None), (100, 0, 0.5), ("250", 2, 2.0 / 3.5), ({"set": True, "number": 100}, 1, 0.5),
        ({"set": False, "number": 100}, 1, None), ({"number": 100}, 1, None),
    ],
)  # fmt: skip
def test_the_load_of_a_node_is_in_hundredths_and_some_numbers_are_none(
    load: object, cpus: int, share: float | None
) -> None:
    found = parsed({"nodes": [{"name": "n1", "cpus": cpus, "cpu_load": load}]}, 7.0)
    assert [sample.available_cpu for sample in found.samples] == ([] if share is None else [pytest.approx(share)])
    assert found.fault == ("no node reports its load" if share is None else "")


def test_nodes_that_sinfo_lists_together_are_asked_of_scontrol(monkeypatch: pytest.MonkeyPatch) -> None:
    node = '{"name": "n1", "cpus": 4, "cpu_load": 100}'
    printed = {"sinfo": '{"sinfo": [{"cpus": {"total": 8}}]}', "scontrol": f'{{"nodes": [{node}]}}'}
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(slurm, "run", lambda *words, **_: asked.append(words) or printed[words[0]])
    (sample,) = Slurm().read().samples
    assert (sample.node, asked[-1]) == ("n1", ("scontrol", "show", "nodes", "--json"))


def test_a_command_that_fails_and_sensors_that_do_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("sinfo cannot be run")

    monkeypatch.setattr(slurm, "run", fail)
    assert Slurm().read() == Readings(fault="sinfo cannot be run")

    def broken() -> float:
        raise OSError("no counters")

    assert ThisHost(broken, lambda: 1.0, "n1").read() == Readings(fault="sensors: no counters")
    for cpu, bandwidth in ((math.nan, 1.0), (1.0, math.nan)):
        found = ThisHost(lambda cpu=cpu: cpu, lambda bandwidth=bandwidth: bandwidth, "n1")  # type: ignore[misc]
        assert found.read() == Readings(fault="read too soon after the last reading")
    monkeypatch.setattr("monitors.sources.this_host.socket.gethostname", lambda: "n7.site.example")
    assert ThisHost(lambda: 1.0, lambda: 1.0).name == "host n7"
    assert ThisHost(lambda: 0.5, lambda: 9.0, "n1").read().samples[0].available_bandwidth == 9.0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("n", 0.0, 0.0, 0.0), ""), (("n", -1e9, 1.0, math.nan), ""), (("n", 0.0, 1.0, 1e308), ""),
        (("", 0.0, 0.5, 1.0), "node is empty"), (("n", math.inf, 0.5, 1.0), "time of node n is inf"),
        (("n", 0.0, 1.0 + 1e-12, 1.0), "available_cpu of node n is 1"), (("n", 0.0, -1e-12, 1.0), "available_cpu of"),
        (("n", 0.0, math.nan, 1.0), "available_cpu of node n is nan"),
        (("n", 0.0, 0.5, -1e-12), "available_bandwidth of node n is -1e-12"),
        (("n", 0.0, 0.5, math.inf), "available_bandwidth of node n is inf"),
    ],
)  # fmt: skip
def test_a_sample_is_what_can_be(values: tuple[str, float, float, float], said: str) -> None:
    if said:
        with pytest.raises(ValueError, match=f"^{said}"):
            Sample(*values)
    else:
        assert Sample(*values).node == "n"
