"""What a Prometheus server remembers of the power of nodes: counters that wrap, meters of the node, and odd answers."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_servers import body, serving

from monitors.sensors.power.ipmi import MOST_WATTS
from monitors.sources.power_history import Drawn, PowerHistory

NOW = 1_700_000_000.0


def history(series: dict[str, list[tuple[str, list[tuple[float, float]]]]]):
    """A server that knows some series of each metric: node, index and path where told, and values at times."""

    def answer(handler) -> None:
        asked = parse_qs(urlsplit(handler.path).query)["query"][0]
        found = [
            {"metric": labels(*node.split()), "values": [[at, str(value)] for at, value in values]}
            for node, values in series.get(asked.partition("{")[0], [])
        ]
        body(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}))(handler)

    return answer


def labels(node: str, index: str = "0", zone: str = "intel-rapl") -> dict[str, str]:
    return {"instance": node, "index": index, "path": f"/sys/class/powercap/{zone}:{index}"}


def counted(watts: float, most: float = 1e9, begin: float = 0.0) -> list[tuple[float, float]]:
    return [(NOW + 10.0 * k, (begin + 10.0 * k * watts) % most) for k in range(20)]


def test_packages_and_their_memory_are_added_through_wraps() -> None:
    series = {
        "node_rapl_package_joules_total": [
            ("n1:9100", counted(80.0, 2000.0)),
            ("n1:9100 1", counted(70.0, 2000.0, 900.0)),
            ("n2:9100", counted(60.0)),
        ],
        "node_rapl_dram_joules_total": [("n1:9100", counted(8.0)), ("n1:9100 1", counted(7.0))],
    }  # fmt: skip
    with serving(history(series)) as url:
        drawn, fault = PowerHistory(url).drawn(NOW + 15.0, NOW + 165.0)
    assert fault == ""
    assert {node: each.covers for node, each in drawn.items()} == {"n1": "package+memory", "n2": "package"}
    assert drawn["n1"].joules(NOW + 15.0, NOW + 165.0) == pytest.approx(150.0 * 165.0, rel=1e-9)
    assert drawn["n2"].joules(NOW + 15.0, NOW + 165.0) == pytest.approx(150.0 * 60.0, rel=1e-9)


@pytest.mark.parametrize("order", [1, -1])
def test_a_package_that_is_told_of_twice_is_counted_once(order: int) -> None:
    plain = [("n1:9100 0", counted(80.0)), ("n1:9100 1", counted(70.0)), ("n2:9100 0 intel-rapl-mmio", counted(60.0))]
    mirrored = [("n1:9100 0 intel-rapl-mmio", counted(90.0)), ("n1:9100 1 intel-rapl-mmio", counted(90.0))]
    with serving(history({"node_rapl_package_joules_total": [*plain, *mirrored][::order]})) as url:
        drawn, _ = PowerHistory(url).drawn(NOW, NOW + 100.0)
    watts = {node: each.joules(NOW, NOW + 100.0) / 100.0 for node, each in drawn.items()}
    assert watts == {"n1": pytest.approx(150.0), "n2": pytest.approx(60.0)}


def test_what_covers_the_node_goes_before_its_packages() -> None:
    series = {
        "node_rapl_package_joules_total": [("n1:9100", counted(80.0))],
        "ipmi_dcmi_power_consumption_watts": [("n1:9290", [(NOW, 160.0), (NOW + 60.0, 180.0), (NOW + 120.0, 180.0)])],
    }
    with serving(history(series)) as url:
        drawn, _ = PowerHistory(url).drawn(NOW, NOW + 120.0)
    assert drawn["n1"].covers == "node"
    assert drawn["n1"].joules(NOW, NOW + 120.0) == pytest.approx(60.0 * 170.0 + 60.0 * 180.0)


@pytest.mark.parametrize("wrong", [0.0, -20.0, 65_535.0])
def test_readings_that_cannot_be_are_bridged_and_where_too_few_are_left_the_packages_count(wrong: float) -> None:
    times = [NOW + 10.0 * k for k in range(13)]
    some = [(at, wrong if 3 <= k < 6 or k == 12 else 300.0 + k) for k, at in enumerate(times)]
    hardly = [(at, 300.0 if k == 4 else wrong) for k, at in enumerate(times)]
    series = {
        "node_rapl_package_joules_total": [("n1:1", counted(80.0)), ("n2:1", counted(80.0))],
        "ipmi_dcmi_power_consumption_watts": [("n1:2", some), ("n2:2", hardly)],
    }
    with serving(history(series)) as url:
        drawn, fault = PowerHistory(url).drawn(NOW, NOW + 110.0)
    assert (fault, {node: each.covers for node, each in drawn.items()}) == ("", {"n1": "node", "n2": "package"})
    assert drawn["n1"].joules(NOW, NOW + 110.0) == pytest.approx(110.0 * 305.5)


@pytest.mark.parametrize(("watts", "covers"), [(MOST_WATTS, "node"), (MOST_WATTS + 1.0, "package")])
def test_a_node_may_draw_more_than_a_package(watts: float, covers: str) -> None:
    readings = [(NOW, watts), (NOW + 60.0, watts)]
    series = {
        "node_rapl_package_joules_total": [("n1:1", counted(80.0))],
        "ipmi_dcmi_power_consumption_watts": [("n1:2", readings)],
    }
    with serving(history(series)) as url:
        assert PowerHistory(url).drawn(NOW, NOW + 60.0)[0]["n1"].covers == covers


def test_a_node_whose_counters_were_not_scraped_at_the_same_time_is_left_out_alone() -> None:
    first, last = counted(80.0)[:8], counted(80.0)[12:]
    series = {
        "node_rapl_package_joules_total": [
            ("n1:1 0", first), ("n1:1 1", last), ("n2:1 0", counted(60.0)), ("n3:1 0", first), ("n3:1 1", last),
        ],
        "ipmi_dcmi_power_consumption_watts": [("n3:2", [(NOW, 160.0), (NOW + 60.0, 160.0)])],
    }  # fmt: skip
    with serving(history(series)) as url:
        drawn, fault = PowerHistory(url).drawn(NOW, NOW + 110.0)
    assert {node: each.covers for node, each in drawn.items()} == {"n2": "package", "n3": "node"}
    assert fault == "the counters of n1 were not scraped at the same time"


def test_a_counter_that_counts_nothing_is_not_taken_for_one_of_what_draws_nothing() -> None:
    series = {
        "node_rapl_package_joules_total": [
            ("n1:1 0", counted(80.0)), ("n1:1 1", counted(0.0)), ("n2:1 0", counted(60.0)), ("n3:1 0", counted(0.0)),
        ],
        "node_rapl_dram_joules_total": [("n2:1 0", counted(0.0))],
        "ipmi_dcmi_power_consumption_watts": [("n3:2", [(NOW, 160.0), (NOW + 60.0, 160.0)])],
    }  # fmt: skip
    with serving(history(series)) as url:
        drawn, fault = PowerHistory(url).drawn(NOW, NOW + 110.0)
    assert {node: each.covers for node, each in drawn.items()} == {"n2": "package", "n3": "node"}
    assert drawn["n2"].joules(NOW, NOW + 110.0) == pytest.approx(110.0 * 60.0)
    assert fault == "the counters of n1 tell no energy"


def test_too_few_scrapes_and_counters_that_jump_tell_nothing() -> None:
    one, wild = [(NOW, 5.0)], [(NOW, 0.0), (NOW + 10.0, 1e9)]
    every = [("n1:1", one), ("n2:1", wild), ("n3:1", counted(60.0)[:2])]
    with serving(history({"node_rapl_package_joules_total": every})) as url:
        drawn, fault = PowerHistory(url).drawn(NOW, NOW + 10.0)
    assert ({*drawn}, fault) == ({"n3"}, "the counters of n2 tell no energy")
    with serving(body("[1, 2]")) as url:
        found, fault = PowerHistory(url).drawn(NOW, NOW + 10.0)
    assert (found, bool(fault)) == ({}, True)
    assert PowerHistory("http://127.0.0.1:9", timeout=1.0).drawn(time.time() - 10.0, time.time())[1]


@given(st.lists(st.floats(1.0, 500.0), min_size=1, max_size=8), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_energies_of_parts_of_a_time_add_up(watts: list[float], one: float, other: float) -> None:
    drawn = Drawn("node", np.arange(len(watts) + 1, dtype=np.float64), np.array(watts))
    whole = float(len(watts))
    low, high = sorted((one * whole, other * whole))
    parts = drawn.joules(0.0, low) + drawn.joules(low, high) + drawn.joules(high, whole)
    assert parts == pytest.approx(drawn.joules(0.0, whole))
