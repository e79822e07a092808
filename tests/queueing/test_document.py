"""Reading and writing network files, and the lines that bad ones get."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from metasched.queueing.document import parse
from metasched.queueing.network import JobClass, Network, Station
from metasched.records import InputError

REFERENCE = Path(__file__).with_name("mva.json").read_text(encoding="utf-8")


def _case(**changes: Any) -> dict[str, Any]:
    case: dict[str, Any] = {
        "name": "n",
        "stations": [{"name": "s", "kind": "queue", "servers": 1, "service": {"c": 0.5}, "visits": {"c": 1}}],
        "classes": [{"name": "c", "population": 3, "think_time": 2}],
    }
    return case | changes


def _station(**changes: Any) -> list[dict[str, Any]]:
    return [_case()["stations"][0] | changes]


def _class(**changes: Any) -> list[dict[str, Any]]:
    return [_case()["classes"][0] | changes]


def as_document(network: Network) -> dict[str, Any]:
    """Write one network as a case that :func:`parse` reads back."""
    names = [job_class.name for job_class in network.classes]
    stations = []
    for station in network.stations:
        entry: dict[str, Any] = {"name": station.name, "kind": station.kind, "servers": station.servers}
        if station.rates:
            entry["rates"] = list(station.rates)
        entry["service"] = dict(zip(names, station.service, strict=True))
        entry["visits"] = dict(zip(names, station.visits, strict=True))
        stations.append(entry)
    return {
        "name": network.name,
        "stations": stations,
        "classes": [
            {"name": entry.name, "population": entry.population, "think_time": entry.think_time}
            for entry in network.classes
        ],
    }


def test_every_reference_case_is_read_and_written_back_unchanged() -> None:
    many, networks = parse(REFERENCE)
    assert many
    for case, network in zip(json.loads(REFERENCE), networks, strict=True):
        del case["expected"]
        assert as_document(network) == case
        assert parse(json.dumps(as_document(network))) == (False, (network,))


def test_load_dependent_rates_are_read_and_written_back() -> None:
    network = Network("n", (Station("s", (0.5,), (1.0,), rates=(1.0, 1.5)),), (JobClass("c", 3),))
    assert parse(json.dumps(as_document(network))) == (False, (network,))


def test_a_class_that_a_station_does_not_name_does_not_go_there() -> None:
    case = _case(classes=[*_class(), {"name": "d", "population": 1, "think_time": 1}])
    assert parse(json.dumps(case))[1][0].demands.tolist() == [[0.5, 0.0]]


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "list is empty"),
        ([_case(), 5], "case 2: the document is 5, expected keys"),
        (_case(stations=[]), "stations"),
        (_case(classes=[]), "classes"),
        (_case(colour="red"), "colour is not a known key"),
        (_case(stations=_station(kind="wheel")), "stations[0].kind is "),
        (_case(stations=_station(servers=0)), "stations[0].servers is "),
        (_case(stations=_station(servers=1.5)), "stations[0].servers is "),
        (_case(stations=_station(servers="2")), "stations[0].servers is "),
        (_case(stations=_station(servers=10**9)), "stations[0].servers is "),
        (_case(stations=_station(service={"c": -1})), "stations[0].service.c is "),
        (_case(stations=_station(service={"c": 10**400})), "stations[0].service.c is "),
        (_case(stations=_station(service={"c": True})), "stations[0].service.c is "),
        (_case(stations=_station(service={"x": 1})), "names class x, which is not in classes"),
        (_case(stations=_station(visits={"c": "1"})), "stations[0].visits.c is "),
        (_case(stations=_station(rates=[0.0])), "a rate of station s is 0.0"),
        (_case(stations=_station(rates=[1.0], servers=2)), "rates of station s is given together with servers"),
        (_case(stations=_station() * 2), "station s of network n is given twice"),
        (_case(classes=_class() * 2), "class c of network n is given twice"),
        (_case(classes=_class(population=-1)), "classes[0].population is "),
        (_case(classes=_class(population=2.5)), "classes[0].population is "),
        (_case(classes=_class(think_time=-1)), "classes[0].think_time is "),
        (
            _case(stations=_station(service={"c": 0}), classes=_class(think_time=0)),
            "class c of network n has no demand",
        ),
        (_case(stations=_station(service={"c": 1e200})), "stations[0].service.c is "),
    ],
)
def test_bad_documents_get_one_line_that_names_the_place(document: Any, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(json.dumps(document), where="net.json")
    message = str(caught.value)
    assert message.startswith("net.json: ")
    assert line in message
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize("text", ["", "{", "nan", '{"stations": NaN}', "[" * 100_000, '"x"', "3"])
def test_text_that_is_no_such_document_gets_a_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("servers", [2.5, 0, True, math.nan, math.inf, 10**9])
def test_a_station_has_a_whole_number_of_servers(servers: float) -> None:
    with pytest.raises(InputError, match=r"servers of station s is .*expected a whole number from 1 to 10000"):
        Station("s", (0.5,), (1.0,), servers=servers)  # type: ignore[arg-type]


@pytest.mark.parametrize("population", [2.5, -1, True, math.nan, 10**9])
def test_a_class_has_a_whole_number_of_jobs(population: float) -> None:
    with pytest.raises(InputError, match=r"population of class c is .*expected a whole number from 0 to 10000000"):
        JobClass("c", population)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"stations": Infinity}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^n\.json: not a JSON document: "):
        parse(text, where="n.json")


def test_what_no_document_can_say_is_refused_of_a_network_made_in_python() -> None:
    with pytest.raises(InputError, match=r"^kind of station s is 'fork', expected queue or delay$"):
        Station("s", (0.5,), (1.0,), kind="fork")  # type: ignore[arg-type]
    idle = Station("s", (0.0,), (1.0,))
    with pytest.raises(InputError, match=r"^class c .* has no demand, expected a demand or a think time$"):
        Network("n", (idle,), (JobClass("c", 1),))
    assert Network("n", (idle,), (JobClass("c", 1, think_time=2.0),)).think_time.tolist() == [2.0]
    assert Network("n", (idle,), (JobClass("c", 0),)).population.tolist() == [0]
