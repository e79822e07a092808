"""Who may have a job sent to a site, and what is passed on of it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import HTTPException

from metasched.service.api import sites
from metasched.service.refusals import NotNowError


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "answer_document", lambda question, ranking, version: {"asked": question, "by": version})


def asked(send: bool, may: bool, leads: bool, places: list[str]) -> tuple[Any, list[Any]]:
    sent: list[Any] = []
    ranking = SimpleNamespace(places=places)
    with ThreadPoolExecutor(1) as pool:
        known = SimpleNamespace(
            pool=pool, rank=lambda question: ranking,
            sent=SimpleNamespace(send=lambda *given: sent.append(given) or SimpleNamespace(uid="0a")),
        )  # fmt: skip
        daemon: Any = SimpleNamespace(sites=known, leads=leads, clock=SimpleNamespace(now=lambda: 7.0))
        client: Any = SimpleNamespace(role="reader", may=lambda role: may and role == "scheduler")
        question: Any = SimpleNamespace(send=send, question=lambda: "question")
        return asyncio.run(sites.rank_sites(question, daemon, client)), sent


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("send", [True, False])
@pytest.mark.parametrize("may", [True, False])
@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("places", [[], ["first", "second"]])
def test_jobs_are_sent_by_schedulers_through_the_daemon_that_leads(
    send: bool, may: bool, leads: bool, places: list[str]
) -> None:
    if send and not may:
        with pytest.raises(HTTPException) as refusal:
            asked(send, may, leads, places)
        assert (refusal.value.status_code, refusal.value.detail) == (
            403, "the role reader may not send jobs, expected scheduler",
        )  # fmt: skip
    elif send and not leads:
        with pytest.raises(NotNowError, match="this daemon is a follower; only the leading daemon sends jobs"):
            asked(send, may, leads, places)
    else:
        document, sent = asked(send, may, leads, places)
        known = {"asked": "question", "by": sites.__version__, "time": 7.0}
        assert document == (known | {"id": "0a"} if send and places else known)
        assert sent == ([(places, "question")] if send and places else [])


def job(name: str) -> Any:
    return SimpleNamespace(as_dict=lambda now: {"job": name, "now": now})


@pytest.mark.parametrize(
    ("report", "done"),
    [
        ({"stays": True, "site": "s"}, ("stays", "u")),
        ({"stays": False, "site": ""}, ("withdrawn", "u")),
        ({"stays": False, "site": "s"}, ("submitted", "u", "s", "17", 2.0, 3.0)),
    ],
)
def test_what_became_of_a_sent_job_is_noted(report: dict[str, Any], done: tuple[Any, ...]) -> None:
    noted: list[Any] = []

    def verb(name: str) -> Any:
        return lambda *given: noted.append((name, *given)) or job(name)

    known: Any = SimpleNamespace(
        now=lambda: 9.0, sent=SimpleNamespace(**{name: verb(name) for name in ("stays", "withdrawn", "submitted")})
    )
    given: Any = SimpleNamespace(**{"job": "17", "data": 2.0, "seconds": 3.0} | report)
    client: Any = None
    assert sites.report_job("u", given, known, client) == {"job": done[0], "now": 9.0}
    assert noted == [done]


@pytest.mark.parametrize("role", ["site", "admin"])
@pytest.mark.parametrize("node", ["east", "west"])
def test_an_agent_reports_links_of_its_own_site_alone(role: str, node: str) -> None:
    measured: list[Any] = []
    known: Any = SimpleNamespace(measured=lambda site, links: measured.append((site, links)) or ["nobody"])
    links = [SimpleNamespace(site=name, bandwidth=9.0, round_trip=0.1, age=2.0) for name in ("west", "nobody")]
    report: Any = SimpleNamespace(site="east", links=links, unknown=("newer",))
    reported: list[Any] = []
    metrics: Any = SimpleNamespace(reported=lambda *given: reported.append(given))
    client: Any = SimpleNamespace(role=role, node=node)
    if role == "site" and node != "east":
        with pytest.raises(HTTPException, match="this agent may only report links of site west"):
            sites.take_links(report, known, metrics, client)
        assert measured == reported == []
    else:
        assert sites.take_links(report, known, metrics, client) == {"taken": 1, "unknown": ["nobody"]}
        ((site, probes),) = measured
        assert reported == [("/v1/sites/links", ("newer",))]
        assert (site, list(probes)) == ("east", ["west", "nobody"])
        assert (probes["west"].bandwidth, probes["west"].round_trip, probes["west"].age) == (9.0, 0.1, 2.0)


@pytest.mark.parametrize("sees_all", [True, False])
def test_sent_jobs_are_shown_to_schedulers_alone(sees_all: bool) -> None:
    known: Any = SimpleNamespace(
        now=lambda: 9.0, sent=SimpleNamespace(newest=lambda most: [job(f"{most}")]), status=lambda: "status",
        paths=SimpleNamespace(as_document=lambda: "links"),
    )  # fmt: skip
    client: Any = SimpleNamespace(sees_all=sees_all)
    jobs = [{"job": "100", "now": 9.0}] if sees_all else []
    assert sites.site_status(known, client) == {"sites": "status", "links": "links", "jobs": jobs}
