"""The page of the service names every route, every field of what it lists in full, and every metric."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import AliasChoices, BaseModel
from stated import page

from metasched.advised_placements import Ask, Demands
from metasched.service.api import administration, history, models, observations, placements, sites, status
from metasched.service.schemas import (
    ExpectIn,
    ForgetIn,
    PredictIn,
    RankIn,
    RunningIn,
    WaitIn,
    WalltimesIn,
)
from tests.service.daemons import running

ROUTES = sorted(
    (method, route.path)
    for routes in (administration, history, models, observations, placements, sites, status)
    for route in routes.router.routes
    for method in route.methods
)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_route_is_named(method: str, path: str) -> None:
    shown = re.sub(r"\{\w+\}", "[A-Z]+", path)
    text = page("sites") + page("service") if path.startswith("/v1/sites") else page("service")
    assert re.search(rf"{shown}(?![\w/])", text)
    if not path.startswith("/v1/sites"):
        assert re.search(rf"`{method} [^`]*{shown}(?![\w/])[^`]*`", text)


@pytest.mark.parametrize(
    ("path", "message", "beside"),
    [
        ("/v1/runs/forget", ForgetIn, BaseModel),
        ("/v1/placements", Ask, Demands),
        ("/v1/rankings", RankIn, Demands),
        ("/v1/running-jobs/advice", RunningIn, BaseModel),
        ("/v1/predictions", PredictIn, BaseModel),
        ("/v1/walltimes", WalltimesIn, BaseModel),
        ("/v1/history/predictions", ExpectIn, BaseModel),
        ("/v1/waits", WaitIn, BaseModel),
    ],
)
def test_every_field_of_a_message_is_named(path: str, message: type[BaseModel], beside: type[BaseModel]) -> None:
    [row] = re.findall(rf"\| `POST {path}` \|.*?\| \|", page("service"))

    def named(name: str) -> bool:
        alias = message.model_fields[name].validation_alias
        names = [name, *(alias.choices if isinstance(alias, AliasChoices) else ())]
        return any(re.search(rf"[` ]{each}[`,]", row) for each in names)

    assert {name for name in message.model_fields.keys() - beside.model_fields.keys() if not named(name)} == set()


def test_every_metric_is_named(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        families = [family for family in daemon.metrics.registry.collect() if family.name.startswith("metasched_")]
    assert len(families) > 10
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert re.search(rf"`{name}(\{{\w+(,\w+)*\}})?`", page("service")), name
        for label in labels:
            assert re.search(rf"`{name}\{{[^}}]*\b{label}\b", page("service")), (name, label)
