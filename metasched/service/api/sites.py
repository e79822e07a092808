"""Routes of a grid's daemon: one ranking of all sites, and the jobs that were sent to them."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException

from metasched import __version__
from metasched.service.api.dependencies import Leading, OfSite, Reader, Scheduler, TheMetrics, TheSites, WholeDaemon
from metasched.service.refusals import NotNowError
from metasched.service.schemas import SiteJobIn, SiteLinksIn, SitesIn, Uid
from metasched.sites.grid import answer_document
from metasched.sites.links import Probe

router = APIRouter(prefix="/v1/sites")

#: Sent jobs that are shown.
SHOWN = 100


@router.post("/rankings")
async def rank_sites(asked: SitesIn, daemon: WholeDaemon, client: Reader) -> dict[str, Any]:
    """The completion of a job at each site, including the transfer of its data; sites that do not answer have a reason.

    With ``send`` the job counts as load at the first site from now on, and the answer has the ``id`` by which its
    submission is to be reported.
    """
    if asked.send and not client.may("scheduler"):
        raise HTTPException(403, f"the role {client.role} may not send jobs, expected scheduler")
    if asked.send and not daemon.leads:
        raise NotNowError("this daemon is a follower; only the leading daemon sends jobs")
    sites, question = daemon.sites, asked.question()

    def answer() -> dict[str, Any]:
        ranking = sites.rank(question)
        document = answer_document(question, ranking, __version__) | {"time": daemon.clock.now()}
        return (
            document | {"id": sites.sent.send(ranking.places, question).uid}
            if asked.send and ranking.places
            else document
        )

    return await asyncio.get_running_loop().run_in_executor(sites.pool, answer)


@router.put("/jobs/{uid}", dependencies=[Leading])
def report_job(uid: Uid, report: SiteJobIn, sites: TheSites, client: Scheduler) -> dict[str, Any]:
    """Report that a job was submitted to a site under a number, or with neither that it was not submitted at all."""
    if report.stays:
        return sites.sent.stays(uid).as_dict(sites.now())
    if not report.site:
        return sites.sent.withdrawn(uid).as_dict(sites.now())
    return sites.sent.submitted(uid, report.site, report.job, report.data, report.seconds).as_dict(sites.now())


@router.get("/jobs/{uid}")
def sent_job(uid: Uid, sites: TheSites, client: Scheduler) -> dict[str, Any]:
    """The state of a job that was sent."""
    return sites.sent.find(uid).as_dict(sites.now())


@router.post("/jobs/{uid}/withdrawal", dependencies=[Leading])
async def withdraw_job(uid: Uid, sites: TheSites, client: Scheduler) -> dict[str, Any]:
    """Whether a pending job should be withdrawn from its site, and the present ranking of the sites.

    If it should, it counts as being withdrawn from now on: report where it was submitted, or that it stays.
    """
    found, ranking = await asyncio.get_running_loop().run_in_executor(sites.pool, sites.reconsider, uid)
    return found.as_dict() | {"sites": [each.as_dict() for each in ranking.places]}


@router.post("/links", dependencies=[Leading])
def take_links(report: SiteLinksIn, sites: TheSites, metrics: TheMetrics, client: OfSite) -> dict[str, Any]:
    """Note what an agent measured from its site to others; names that this daemon knows nothing of are returned."""
    if client.role == "site" and client.node != report.site:
        raise HTTPException(403, f"this agent may only report links of site {client.node}")
    metrics.reported("/v1/sites/links", report.unknown)
    links = {each.site: Probe(each.bandwidth, each.round_trip, each.age) for each in report.links}
    unknown = sites.measured(report.site, links)
    return {"taken": len(report.links) - len(unknown), "unknown": unknown}


@router.get("")
def site_status(sites: TheSites, client: Reader) -> dict[str, Any]:
    """The outcomes and the correction of each site, the links between sites, and the latest sent jobs.

    The jobs are for schedulers and administrators.
    """
    jobs = [job.as_dict(sites.now()) for job in sites.sent.newest(SHOWN)] if client.sees_all else []
    return {"sites": sites.status(), "links": sites.paths.as_document(), "jobs": jobs}
