"""Queueing networks as JSON documents: one case, or a list of cases, each stations, classes and perhaps ``expected``.

What comes in is hostile until it has been checked here; the first thing wrong is named by the path to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictInt, TypeAdapter, ValidationError

from metasched.json_numbers import read_finite
from metasched.queueing.network import LARGEST, MOST_JOBS, MOST_SERVERS, JobClass, Network, Station
from metasched.records import InputError
from metasched.validation import Located, first_error
from monitors.validated_fields import StrictFields

#: Longest document that is read, in characters.
LONGEST = 50_000_000

_Number = Annotated[float, Field(strict=True, ge=0, le=LARGEST)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Station(StrictFields, BaseModel):
    name: _Name
    kind: Literal["queue", "delay"] = "queue"
    servers: Annotated[StrictInt, Field(ge=1, le=MOST_SERVERS)] = 1
    rates: list[_Number] = []
    service: dict[_Name, _Number]
    visits: dict[_Name, _Number] | None = None


class _Class(StrictFields, BaseModel):
    name: _Name
    population: Annotated[StrictInt, Field(ge=0, le=MOST_JOBS)]
    think_time: _Number = 0


class _Case(StrictFields, BaseModel):
    name: str = ""
    stations: Annotated[list[_Station], Field(min_length=1)]
    classes: Annotated[list[_Class], Field(min_length=1)]
    expected: dict[str, Any] | None = None


_CASE = TypeAdapter(_Case)


def parse(text: str, *, where: str = "") -> tuple[bool, tuple[Network, ...]]:
    """Read networks from the text of a JSON document.

    Parameters
    ----------
    text : one case, or a list of cases.
    where : name of the file, for messages.

    Returns
    -------
    many : whether the document was a list.
    networks : one network for each case, in order.

    Raises
    ------
    InputError : when the text is not such a document; the message names the case, the field and what was expected.

    Examples
    --------
    >>> many, (network,) = parse('''{"stations": [{"name": "cpu", "service": {"batch": 0.5}}],
    ...                             "classes": [{"name": "batch", "population": 3}]}''')
    >>> many, network.stations[0].visits, network.population
    (False, (1.0,), array([3]))
    """
    if len(text) > LONGEST:
        raise InputError(f"the document has {len(text)} characters, expected at most {LONGEST}", where=where)
    try:
        document = read_finite(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON document: {error}", where=where) from None
    if isinstance(document, list):
        if not document:
            raise InputError("the list is empty, expected at least one network", where=where)
        return True, tuple(
            _network(case, f"{where}: case {number}" if where else f"case {number}")
            for number, case in enumerate(document, start=1)
        )
    return False, (_network(document, where),)


def _network(document: object, where: str) -> Network:
    try:
        case = _CASE.validate_python(document)
    except ValidationError as error:
        raise InputError(first_error(error), where=where) from None
    names = [entry.name for entry in case.classes]
    with Located(where):
        stations = tuple(_station(entry, names) for entry in case.stations)
        classes = tuple(JobClass(entry.name, entry.population, float(entry.think_time)) for entry in case.classes)
        return Network(case.name, stations, classes)


def _station(entry: _Station, names: list[str]) -> Station:
    visits = dict.fromkeys(entry.service, 1.0) if entry.visits is None else entry.visits
    for field, given in (("service", entry.service), ("visits", visits)):
        for name in given:
            if name not in names:
                raise InputError(f"{field} of station {entry.name} names class {name}, which is not in classes")
    return Station(
        name=entry.name,
        # A class that a station does not name does not go there.
        service=tuple(float(entry.service.get(name, 0.0)) for name in names),
        visits=tuple(float(visits.get(name, 0.0)) for name in names),
        kind=entry.kind,
        servers=entry.servers,
        rates=tuple(float(rate) for rate in entry.rates),
    )
