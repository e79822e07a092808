"""Everything that schedulers' listings become, field by field: one line for each kind of job and node that there is."""

from __future__ import annotations

import json
import math
from typing import Any
from xml.etree import ElementTree

import pytest

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.flux import listing as flux
from metasched.schedulers.flux.source import FluxSource
from metasched.schedulers.grid_engine import listing as grid_engine
from metasched.schedulers.grid_engine.source import GridEngineSource
from metasched.schedulers.htcondor import listing as htcondor
from metasched.schedulers.htcondor.source import HTCondorSource
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import Instance, ListedJob, Listing
from metasched.schedulers.oar import listing as oar
from metasched.schedulers.oar.source import OarSource
from metasched.schedulers.pbs import listing as pbs
from metasched.schedulers.pbs.source import PbsSource
from metasched.schedulers.task_ranges import MOST_TASKS
from tests.schedulers import flux_answers, htcondor_answers, oar_answers, pbs_answers

MARK = "metasched:app=cg,n=1400"


def lines(listed: tuple[Any, ...]) -> list[str]:
    """One text for each, so that a failure shows what differs, and NaN equals NaN."""
    return [repr(each) for each in listed]


@pytest.mark.parametrize(
    ("source", "command", "word", "apart", "epilog", "accounts_for_all"),
    [
        (FluxSource, "flux", "queue", False, False, False),
        (GridEngineSource, "qsub", "queue", True, True, True),
        (HTCondorSource, "condor_submit", "partition", False, False, False),
        (OarSource, "oarsub", "partition", False, False, False),
        (PbsSource, "qsub", "queue", False, True, False),
    ],
)
def test_schedulers_differ_in_what_they_call_a_partition_and_in_who_reports_ended_jobs(
    source: type[ListedCluster], command: str, word: str, apart: bool, epilog: bool, accounts_for_all: bool
) -> None:
    facts = (source.command, source.word, source.apart, source.epilog, source.accounts_for_all)
    assert facts == (command, word, apart, epilog, accounts_for_all)


def test_machines_of_htcondor() -> None:
    slot = htcondor_answers.slot
    unknown = slot("n6", TotalCpus=2)
    del unknown["TotalMemory"]
    found = htcondor.instances(
        [
            slot("n1", cpus=1), slot("n1", "Claimed", 2), slot("n1", "Preempting", 1), slot("n2", "Matched", 3),
            slot("n3", "Drained"), slot("n3", cpus=2), slot("n4", "Backfill"),
            slot("n5", "Delete", MetaschedPartition="x"),
            unknown, slot("n7", "Owner", MetaschedPartition=7),
        ]
    )  # fmt: skip
    assert lines(found) == lines(
        (
            Instance("pool", "n1", 4, 3, True, None, 16_000.0),
            Instance("pool", "n2", 4, 3, True, None, 16_000.0),
            Instance("pool", "n3", 4, 0, False, None, 16_000.0),
            Instance("pool", "n4", 4, 0, False, None, 16_000.0),
            Instance("x", "n5", 4, 0, False, None, 16_000.0),
            Instance("pool", "n6", 2, 0, True, None, math.nan),
            Instance("pool", "n7", 4, 0, False, None, 16_000.0),
        )
    )


def test_jobs_of_htcondor() -> None:
    job, runs = htcondor_answers.job, htcondor_answers.RUNS
    submitted, started = float(htcondor_answers.SUBMITTED), float(htcondor_answers.STARTED)
    found = htcondor.listed(
        [
            job(1, 2, **runs), job(2, 6, **runs, ProcId=3, JobBatchName="b"), job(3, 7, **runs, RequestCpus=0),
            job(4, 2, JobCurrentStartDate=started), job(5, 1, **runs, AllowedJobDuration=60, MetaschedPartition="new"),
            job(6, 5, Metasched=7, Cmd="cg"), job(7, 3), job(8, 4), job(9, 1, JobUniverse=11),
            job(10, 2, JobUniverse=11),
        ]
    )  # fmt: skip
    assert lines(found) == lines(
        (
            ListedJob("1.0", "cg", "ann", {"n1": 3}, False, since=started, comment=MARK),
            ListedJob("2.3", "b", "ann", {"n1": 3}, False, since=started, comment=MARK),
            ListedJob("3.0", "cg", "ann", {"n1": 1}, False, since=started, comment=MARK),
            ListedJob("4.0", "cg", "ann", {"": 3}, False, since=submitted, comment=MARK),
            ListedJob("5.0", "cg", "ann", {"": 3}, True, ("new",), 60.0, since=submitted, comment=MARK),
            ListedJob("6.0", "cg", "ann", {"": 3}, False, since=submitted),
        )
    )


def test_jobs_that_htcondor_has_ended() -> None:
    job, ran = htcondor_answers.job, htcondor_answers.RAN
    submitted, start = float(htcondor_answers.SUBMITTED), float(htcondor_answers.STARTED)
    never = [
        {**job(6, 4, **ran), **lacking}
        for lacking in (
            {"JobUniverse": 11}, {"LastRemoteHost": ""}, {"JobCurrentStartDate": None}, {"CompletionDate": 0},
        )
    ]  # fmt: skip
    found = htcondor.ended(
        [
            *never, job(1, 4, **ran, ExitCode=0), job(2, 3, **ran, ExitCode=3, MetaschedPartition="new", ProcId=1),
            job(3, 4, **ran, ExitBySignal=True, QDate=None, Metasched=None),
            job(4, 4, **ran, ExitBySignal=True, ExitSignal=15, AllowedJobDuration=90, JobBatchName="b"),
            job(5, 4, **ran, RequestCpus="2 * x"),
        ]
    )  # fmt: skip
    times = start, start + 50.0
    assert lines(found) == lines(
        (
            AccountedJob("1.0", "pool", ("n1",), "ann", "cg", submitted, *times, False, 0, 3, None, "", MARK),
            AccountedJob("2.1", "new", ("n1",), "ann", "cg", submitted, *times, True, 3, 3, None, "array", MARK),
            AccountedJob("3.0", "pool", ("n1",), "ann", "cg", 0.0, *times, False, 128, 3),
            AccountedJob("4.0", "pool", ("n1",), "ann", "b", submitted, *times, False, 143, 3, 90.0, "", MARK),
            AccountedJob("5.0", "pool", ("n1",), "ann", "cg", submitted, *times, False, 1, 1, None, "", MARK),
        )
    )


def test_resources_of_flux() -> None:
    known = json.loads(flux_answers.resources("0-1,5", "n[1-3]"))
    held = flux.properties(known)
    assert held == {"n1": {"new", "old"}, "n2": {"new", "old"}, "n3": frozenset()}
    queues = {"new": {"requires": ["new"]}, "all": {}, "both": {"requires": ["new", "old"]}}
    found = flux.instances(flux.cores(known), {"n1": 1, "n2": 9}, {"n2": 4}, held, queues)
    one, two, three = ("n1", 4, 3, True, None, math.nan), ("n2", 4, 0, False, None, math.nan), ("n3", 4, 4, True, None)
    assert lines(found) == lines(
        (
            Instance("new", *one), Instance("new", *two), Instance("all", *one), Instance("all", *two),
            Instance("all", *three, math.nan), Instance("both", *one), Instance("both", *two),
        )
    )  # fmt: skip
    assert [flux.instances({"n1": 1}, {}, {}, {"n1": frozenset()}, none)[0].queue for none in ({}, None)] == [
        "default"
    ] * 2
    with pytest.raises(ValueError, match="'0-10000001' is not a set of numbers"):
        flux.cores(json.loads(flux_answers.resources("0", "n1", "0-10000001")))


def test_jobs_of_flux() -> None:
    job, ran = flux_answers.job, flux_answers.RAN
    submitted, started = flux_answers.SUBMITTED, flux_answers.STARTED
    found = flux.listed(
        {
            "jobs": [
                job(1, "RUN", **ran), job(2, "CLEANUP", **ran | {"nodelist": "n[1-3]"}, ncores=8, username="ann"),
                job(3, "RUN"), job(4, "SCHED", queue="", duration=0, ncores=None, ntasks=5),
                job(5, "PRIORITY", ncores=9),
                job(6, "INACTIVE", **ran), job(0, "DEPEND", ncores=0, ntasks=0, userid=None),
                job((1 << 64) - 1, "RUN", **ran, ncores=1),
            ]
        }
    )  # fmt: skip
    assert lines(found) == lines(
        (
            ListedJob("1", "cg", "1000", {"n1": 2, "n2": 1}, False, ("new",), 600.0, since=started),
            ListedJob("2", "cg", "ann", {"n1": 3, "n2": 3, "n3": 2}, False, ("new",), 600.0, since=started),
            ListedJob("4", "cg", "1000", {"": 5}, True, (), None, since=submitted),
            ListedJob("5", "cg", "1000", {"": 9}, False, ("new",), 600.0, since=submitted),
            ListedJob("0", "cg", "None", {"": 1}, False, ("new",), 600.0, since=submitted),
            ListedJob(str((1 << 64) - 1), "cg", "1000", {"n1": 1, "n2": 1}, False, ("new",), 600.0, since=started),
        )
    )
    for number in (True, -1, 1 << 64, "7", None):
        with pytest.raises(ValueError, match="a job is called"):
            flux.listed({"jobs": [job(7, "SCHED") | {"id": number}]})


def test_jobs_that_flux_has_ended() -> None:
    job, ran = flux_answers.job, flux_answers.RAN | {"t_cleanup": flux_answers.STARTED + 50.0}
    well = {"result": "COMPLETED", "returncode": 0}
    found = flux.ended(
        {
            "jobs": [
                job(8, "RUN", **ran), job(9, "INACTIVE", **ran | {"t_run": None}),
                job(7, "INACTIVE", **ran | {"nodelist": ""}),
                job(6, "INACTIVE", **ran | {"t_cleanup": 0}), job(1, "INACTIVE", **ran, **well),
                job(2, "INACTIVE", **ran, result="TIMEOUT", returncode=142, queue=None, duration=None),
                job(3, "INACTIVE", **ran, result="FAILED", returncode=-9, t_submit=None),
                job(4, "INACTIVE", **ran, result="FAILED", returncode=""), job(5, "INACTIVE", **ran),
            ]
        }
    )  # fmt: skip
    times = flux_answers.STARTED, flux_answers.STARTED + 50.0
    who, submitted = (("n1", "n2"), "1000", "cg"), flux_answers.SUBMITTED
    assert lines(found) == lines(
        (
            AccountedJob("1", "new", *who, submitted, *times, False, 0, 3, 600.0),
            AccountedJob("2", "default", *who, submitted, *times, True, 142, 3, None),
            AccountedJob("3", "new", *who, 0.0, *times, True, 137, 3, 600.0),
            AccountedJob("4", "new", *who, submitted, *times, True, 0, 3, 600.0),
            AccountedJob("5", "new", *who, submitted, *times, True, 0, 3, 600.0),
        )
    )


def test_hosts_of_pbs_and_their_queues() -> None:
    node, queue = pbs_answers.node, pbs_answers.queue
    nodes = {
        "n1[0]": node("n1", used=3), "n1[1]": node("n1", ncpus=2, state="job-busy,offline"),
        "n2": node("n2", state="resv-exclusive"), "n3": node("n3", used=9, queue="own"),
        "n4": node("n4", resources_available={"ncpus": 8, "Qlist": "fast,,more", "mem": "2097152b"}),
        "n5": node("n5", state="free,stale", resources_available={"host": "n5"}),
    }  # fmt: skip
    known = pbs.hosts({"nodes": nodes})
    none: frozenset[str] = frozenset()
    assert known == {
        "n1": pbs.Host(6, 5, False, 2048.0, "", none),
        "n2": pbs.Host(4, 4, True, 1024.0, "", none),
        "n3": pbs.Host(4, 4, True, 1024.0, "own", none),
        "n4": pbs.Host(8, 0, True, 2.0, "", frozenset({"fast", "more"})),
        "n5": pbs.Host(4, 0, False, 0.0, "", none),
    }
    queues = {
        "route": {"queue_type": "Route"}, "fast": queue(default_chunk={"Qlist": "fast"}), "own": queue(),
        "shut": queue(enabled="False", resources_max={"walltime": "1:0:0"}, default_chunk={"Qlist": "more"}),
        "still": queue(started="False", default_chunk={"Qlist": "more"}), "any": queue(),
    }  # fmt: skip
    assert pbs.instances({"Queue": queues}, known) == (
        Instance("fast", "n4", 8, 0, True, None, 2.0),
        Instance("own", "n3", 4, 4, True, None, 1024.0),
        Instance("shut", "n4", 8, 0, False, 3600.0, 2.0),
        Instance("still", "n4", 8, 0, False, None, 2.0),
        Instance("any", "n1", 6, 5, False, None, 2048.0),
        Instance("any", "n2", 4, 4, True, None, 1024.0),
        Instance("any", "n4", 8, 0, True, None, 2.0),
        Instance("any", "n5", 4, 0, False, None, 0.0),
    )
    for size, megabytes in (("3kb", 3 / 1024), ("5mb", 5.0), ("7tb", 7 * 1024.0**2), ("9b", 9 / 1024**2)):
        assert pbs.megabytes(size) == megabytes


def test_jobs_of_pbs() -> None:
    job = pbs_answers.job
    submitted, started = float(pbs_answers.SUBMITTED), float(pbs_answers.STARTED)
    bound = "1:ncpus=2:host=n1+1:ncpus=1:host=n2"
    jobs = {
        "1.pbs": job(), "2[3].pbs": job("S"), "2[].pbs": job("B"), "3": job("Q", Resource_List={"select": bound}),
        "4.pbs": job("H", Resource_List={"ncpus": 5}, Variable_List={}), "5.pbs": job("Q", Resource_List={}),
        "6.pbs": job("E", exec_vnode="(n1:mem=4kb)"), "7.pbs": job("F"), "8.pbs": job("X"),
        "9.pbs": job("W", Job_Name="b"),
        "10.pbs": job("U"), "11.pbs": job("T", Job_Owner="bob"),
    }  # fmt: skip
    two, new = {"n1": 2, "n2": 1}, ("new",)
    runs = {"since": started, "comment": MARK}
    waits = {"since": submitted, "comment": MARK}
    assert lines(pbs.listed({"Jobs": jobs})) == lines(
        (
            ListedJob("1", "cg", "ann", two, False, new, 600.0, **runs),
            ListedJob("2[3]", "cg", "ann", two, False, new, 600.0, **runs),
            ListedJob("3", "cg", "ann", {"": 3}, True, new, None, frozenset({"n1", "n2"}), **waits),
            ListedJob("4", "cg", "ann", {"": 5}, False, new, None, since=submitted),
            ListedJob("5", "cg", "ann", {"": 1}, True, new, None, **waits),
            ListedJob("6", "cg", "ann", {"": 3}, False, new, 600.0, **waits),
            ListedJob("9", "b", "ann", {"": 3}, False, new, 600.0, **waits),
            ListedJob("10", "cg", "ann", two, False, new, 600.0, **runs),
            ListedJob("11", "cg", "bob", {"": 3}, False, new, 600.0, **waits),
        )
    )
    assert pbs.listed({}) == ()


def test_jobs_that_pbs_has_ended() -> None:
    job = pbs_answers.job
    used = {"resources_used": {"walltime": "00:01:40"}}
    jobs = {
        "1.pbs": job("F", Exit_status=0, **used), "2[3].pbs": job("X", Exit_status=265, queue="old", Variable_List={}),
        "3.pbs": job("F", Exit_status=-3, qtime="", Resource_List={}, **used), "4.pbs": job("F", **used),
        "5.pbs": job("F", Exit_status=0, exec_vnode=""), "6.pbs": job("F", Exit_status=0, stime="never"),
        "7.pbs": job("R", Exit_status=0, **used), "8.pbs": job("F", Exit_status=255, **used),
        "9.pbs": job("F", Exit_status=256, **used),
    }  # fmt: skip
    who, submitted, start = (("n1", "n2"), "ann", "cg"), float(pbs_answers.SUBMITTED), float(pbs_answers.STARTED)
    end = start + 100.0
    assert lines(pbs.ended({"Jobs": jobs})) == lines(
        (
            AccountedJob("1", "new", *who, submitted, start, end, False, 0, 3, 600.0, "", MARK),
            AccountedJob("2[3]", "old", *who, submitted, start, start, False, 137, 3, 600.0, "array"),
            AccountedJob("3", "new", *who, 0.0, start, end, True, 1, 3, None, "", MARK),
            AccountedJob("8", "new", *who, submitted, start, end, False, 255, 3, 600.0, "", MARK),
            AccountedJob("9", "new", *who, submitted, start, end, False, 128, 3, 600.0, "", MARK),
        )
    )
    for name in ("x.pbs", "7x", "1234567890123", "7[1234567890]"):
        with pytest.raises(ValueError, match="a job is called"):
            pbs.number(name)


#: Resources 1 and 2 of OAR are a node of the old partition; 5 to 7 two nodes of the new one, where 7 is drained.
OAR_RESOURCES = {
    str(number): oar_answers.resource(number, node, cluster, **more)
    for number, node, cluster, more in (
        (1, "n1", "old", {}), (2, "n1", "old", {"state": "Absent"}), (5, "n3", "new", {}), (6, "n3", "new", {}),
        (7, "n4", "new", {"drain": "YES"}), (8, "", "new", {}), (9, "n5", "new", {"type": "licence"}),
        (10, "n6", None, {}),
    )
}  # fmt: skip


def test_resources_of_oar() -> None:
    known = oar.resources(OAR_RESOURCES, "cluster")
    assert known == {
        1: oar.Resource("n1", "old", True), 2: oar.Resource("n1", "old", False), 5: oar.Resource("n3", "new", True),
        6: oar.Resource("n3", "new", True), 7: oar.Resource("n4", "new", False),
    }  # fmt: skip
    assert {each.partition for each in oar.resources(OAR_RESOURCES, "").values()} == {"default"}
    assert 10 in oar.resources(OAR_RESOURCES, "")
    jobs = {"1": oar_answers.job(1, "Running", assigned_resources=[5])}
    jobs |= {"2": oar_answers.job(2, "toAckReservation", assigned_resources=[6])}
    assert lines(oar.instances(known, jobs)) == lines(
        (
            Instance("new", "n3", 2, 1, True, None, math.nan),
            Instance("new", "n4", 1, 1, False, None, math.nan),
            Instance("old", "n1", 2, 1, True, None, math.nan),
        )
    )


def test_jobs_of_oar() -> None:
    known, job, ran = oar.resources(OAR_RESOURCES, "cluster"), oar_answers.job, oar_answers.RAN
    submitted, started, mark = float(oar_answers.SUBMITTED), float(oar_answers.STARTED), "metasched:app=cg,n=500"
    jobs = [
        job(1, "Running", **ran), job(2, "Suspended", **ran | {"assigned_resources": [5, 99]}),
        job(3, "Terminated", **ran),
        job(4, "Running", **ran | {"assigned_resources": [99]}), job(5, "Hold", properties=None, command=None),
        job(6, "toLaunch", walltime=60, message="R=0,W=0:1:2", name="b"), job(7, "Waiting", message="R=4,W=0:0:0,J"),
        job(8, "Waiting", message="none", properties="cluster = 'a b'"), job(9, "Waiting", message="R=2,W=1:2:345"),
    ]  # fmt: skip
    found = oar.listed({str(each["Job_Id"]): each for each in jobs}, known, "cluster")
    waits = {"since": submitted, "comment": mark}
    slots = [dict(each.slots) for each in found]
    assert slots == [{"n3": 2, "n4": 1}, {"n3": 1}, {"": 3}, {"": 1}, {"": 4}, {"": 1}, {"": 1}]
    new = ("new",)
    assert found == (
        ListedJob("1", "", "nobody", slots[0], True, new, 7200.0, since=started, comment=mark),
        ListedJob("2", "", "nobody", slots[1], True, new, 7200.0, since=started, comment=mark),
        ListedJob("5", "", "nobody", slots[2], False, (), 7200.0, since=submitted),
        ListedJob("6", "b", "nobody", slots[3], True, new, 60.0, **waits),
        ListedJob("7", "", "nobody", slots[4], True, new, None, **waits),
        ListedJob("8", "", "nobody", slots[5], True, (), None, **waits),
        ListedJob("9", "", "nobody", slots[6], True, new, None, **waits),
    )


def test_jobs_that_oar_has_ended() -> None:
    known, job = oar.resources(OAR_RESOURCES, "cluster"), oar_answers.job
    ran = oar_answers.RAN | {"stopTime": oar_answers.STARTED + 50}
    jobs = [
        job(1, "Terminated", **ran, exit_code=0),
        job(2, "Error", **ran | {"assigned_resources": [1, 99]}, exit_code=768),
        job(3, "Terminated", **ran, exit_code=9, name="b"), job(4, "Terminated", **ran | {"assigned_resources": [99]}),
        job(5, "Terminated", **ran | {"startTime": 0}), job(6, "Terminated", **ran | {"stopTime": 0}),
        job(7, "Terminated", **ran, submissionTime=None, command="./cg.sh METASCHED=app=x"),
    ]  # fmt: skip
    times = float(oar_answers.STARTED), oar_answers.STARTED + 50.0
    submitted, mark, nodes = float(oar_answers.SUBMITTED), "metasched:app=cg,n=500", ("n3", "n4")
    assert oar.accounted({str(each["Job_Id"]): each for each in jobs}, known) == (
        AccountedJob("1", "new", nodes, "nobody", "", submitted, *times, False, 0, 3, 7200.0, "", mark),
        AccountedJob("2", "old", ("n1",), "nobody", "", submitted, *times, True, 3, 1, 7200.0, "", mark),
        AccountedJob("3", "new", nodes, "nobody", "b", submitted, *times, False, 9, 3, 7200.0, "", mark),
        AccountedJob("7", "new", nodes, "nobody", "", 0.0, *times, False, 1, 3, 7200.0),
    )


def grid_engine_job(number: str, state: str, slots: int, more: str = "", started: bool = True) -> str:
    """A job as qstat prints one."""
    time = "JAT_start_time" if started else "JB_submission_time"
    return f"""<job_list><JB_job_number>{number}</JB_job_number><JB_name>c</JB_name><JB_owner>ann</JB_owner>
      <state>{state}</state><{time}>2026-11-22T10:04:10</{time}><slots>{slots}</slots>{more}</job_list>"""


def grid_engine_queue(name: str, counts: tuple[int, int, int], state: str, inside: str) -> str:
    """An instance of a queue as qstat prints one: processors in use, reserved and in all."""
    used, reserved, total = counts
    return f"""<Queue-List><name>{name}</name><slots_used>{used}</slots_used><slots_resv>{reserved}</slots_resv>
      <slots_total>{total}</slots_total>{state}{inside}</Queue-List>"""


def test_queues_and_jobs_of_grid_engine() -> None:
    limits = '<resource name="h_rt">2:0:0</resource><resource name="mem_total">3g</resource>'
    array = grid_engine_job("7", "r", 2, "<tasks>4</tasks><full_job_name>cg-full</full_job_name>")
    wide = '<hard_request name="h_rt">90</hard_request><hard_request name="hostname">n1|n2</hard_request>'
    one = '<hard_request name="hostname">n1</hard_request>'
    text = "".join(
        (
            "<job_info><queue_info>",
            grid_engine_queue("new@n1", (3, 1, 8), "", limits + array + grid_engine_job("8", "r", 1)),
            grid_engine_queue("old@n1", (2, 0, 4), "<state>au</state>", grid_engine_job("8", "r", 2)),
            grid_engine_queue("new@n2", (5, 0, 8), "<state/>", grid_engine_job("8", "r", 5)),
            "</queue_info><job_info>",
            grid_engine_job("9", "qw", 3, f"<hard_req_queue>new</hard_req_queue>{wide}", started=False),
            grid_engine_job("10", "hqw", 1, "<tasks>1-9:2,12,20-21</tasks>", started=False),
            grid_engine_job("11", "Rq", 1, f"<tasks>1-9999999</tasks>{one}", started=False),
            grid_engine_job("12", "qw", 1, "<tasks>x-2,5-1</tasks>", started=False),
            "</job_info></job_info>",
        )
    )  # fmt: skip
    found = grid_engine.read_listing(ElementTree.fromstring(text))
    moment = grid_engine.moment("2026-11-22T10:04:10")
    assert lines(found.instances) == lines(
        (
            Instance("new", "n1", 8, 4, True, 7200.0, 3e9 / 1024**2),
            Instance("old", "n1", 4, 2, False, None, math.nan),
            Instance("new", "n2", 8, 5, True, None, math.nan),
        )
    )
    assert found.jobs == (
        ListedJob("7.4", "cg-full", "ann", {"n1": 2}, False, ("new",), None, since=moment),
        ListedJob("8", "c", "ann", {"n1": 3, "n2": 5}, False, ("new", "old"), None, since=moment),
        ListedJob("9", "c", "ann", {"": 3}, True, ("new",), 90.0, frozenset({"n1", "n2"}), moment),
        ListedJob("10", "c", "ann", {"": 1}, False, (), None, since=moment, tasks=8),
        ListedJob("11", "c", "ann", {"": 1}, True, (), None, since=moment, tasks=MOST_TASKS),
        ListedJob("12", "c", "ann", {"": 1}, True, (), None, since=moment),
    )
    for size, megabytes in (("2K", 2 / 1024), ("2M", 2.0), ("3T", 3 * 1024.0**2), ("1k", 1e3 / 1024**2),
                            ("1m", 1e6 / 1024**2), ("2t", 2e12 / 1024**2)):  # fmt: skip
        assert grid_engine.megabytes(size) == megabytes


def test_jobs_of_the_queue_name_the_placements_of_their_comments() -> None:
    placed, uid = "night metasched:app=cg,n=9,placement=", "1f" * 16
    jobs = (
        ListedJob("1", "cg", "ann", {"n1": 3}, since=5.0, comment=placed + uid),
        ListedJob("2", "cg", "ann", {"": 3}, comment=placed + uid),
        ListedJob("3", "cg", "ann", {"": 3}, comment="metasched:app=cg,n=9"),
    )
    found = Listing((), jobs).queue(9.0)
    assert [(job.number, job.placement) for job in found] == [("1", uid), ("2", uid), ("3", "")]
