"""Whatever the daemon does, jobs are accepted as they were: the hook waits for no answer that does not come."""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.system import real_slurm
from tests.system.bad_daemons import FAULTS, Bad, changed
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

MARK = "metasched:app=cg,n=1400"
UNCHANGED = {"Partition": "old", "ReqNodeList": "(null)", "TimeLimit": "00:05:00", "NumTasks": "2", "Comment": MARK}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path_factory.mktemp("slurm")) as slurm:
        slurm.stand_still()
        yield slurm


#: How often each is tried: with those while the daemon is down, 100 in all.
TRIES = 7


def submit_and_compare(slurm: Slurm, tries: int) -> list[float]:
    took = []
    for _ in range(tries):
        submitted = slurm.sbatch("--ntasks=2", f"--comment={MARK}")
        assert submitted.job, submitted.said
        took.append(submitted.seconds)
        job = slurm.job(submitted.job)
        assert {field: job[field] for field in UNCHANGED} == UNCHANGED
        slurm.run("scancel", str(submitted.job))
    return took


SITES_OWN = """
function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.admin_comment = "the site was here"
  if job_desc.name == "refused" then
    slurm.log_user("not here")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
"""


def test_a_sites_own_hook_comes_first_and_a_broken_one_of_ours_harms_it_not(tmp_path: Path) -> None:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path / "slurm") as slurm, closing(Bad(changed())) as daemon:
        slurm.hooks({"address": daemon.address})
        slurm.chain(SITES_OWN)
        ours = slurm.folder / "metasched" / "job_submit.lua"

        def submitted(*words: str) -> dict[str, str]:
            job = slurm.sbatch("--ntasks=2", f"--comment={MARK}", *words, script=b"#!/bin/sh\nsleep 60\n").job
            answer = slurm.job(job) if job else {}
            slurm.run("scancel", "--user=root")
            return answer

        answer = submitted()
        assert (answer["AdminComment"], answer["ReqNodeList"]) == ("the", "b[1-2]")
        assert submitted("--job-name=refused") == {}
        (slurm.folder / "metasched" / "metasched.off").touch()
        assert submitted()["ReqNodeList"] == "(null)"
        (slurm.folder / "metasched" / "metasched.off").unlink()
        ours.write_text("this is no Lua")
        os.utime(slurm.folder / "job_submit.lua", (1.5e9, 1.5e9))
        answer = submitted()
        assert (answer["AdminComment"], answer["ReqNodeList"]) == ("the", "(null)")


def test_a_hundred_jobs_are_accepted_unchanged_whatever_the_daemon_does(slurm: Slurm) -> None:
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            began = time.perf_counter()
            subprocess.run(["sinfo"], env=slurm.environment, capture_output=True, check=True)
            waits.append(time.perf_counter() - began)
            time.sleep(0.02)

    took: dict[str, list[float]] = {}
    bystander = threading.Thread(target=ask)
    bystander.start()
    try:
        for name, answer in FAULTS.items():
            with closing(Bad(answer)) as bad:
                slurm.hooks({"address": bad.address})
                took[name] = submit_and_compare(slurm, TRIES)
        slurm.hooks({"socket": str(slurm.folder / "nobody.sock")})
        took["is down"] = submit_and_compare(slurm, 100 - TRIES * len(FAULTS))
    finally:
        over.set()
        bystander.join()
    for name, seconds in took.items():
        print(f"daemon {name}: {len(seconds)} of {len(seconds)} unchanged, slowest {1000 * max(seconds):.0f} ms")
    print(f"sinfo meanwhile: {len(waits)} calls, slowest {1000 * max(waits):.0f} ms")
    assert sum(len(seconds) for seconds in took.values()) == 100
    assert waits


def test_a_sound_answer_is_followed_and_the_user_told(slurm: Slurm) -> None:
    with closing(Bad(changed())) as good:
        slurm.hooks({"address": good.address})
        submitted = slurm.sbatch("--ntasks=2", f"--comment=please {MARK} now")
    job = slurm.job(submitted.job)
    assert (job["Partition"], job["ReqNodeList"], job["TimeLimit"]) == ("new", "b[1-2]", "00:02:00")
    assert "metasched: go" in submitted.said
    answer = slurm.run("squeue", "-h", "-o", "%k", "-j", str(submitted.job)).strip()
    assert answer == "please metasched:app=cg,n=1400,p=2,placement=0f now"
    slurm.run("scancel", str(submitted.job))


def test_the_time_limit_stays_below_the_users_and_the_partitions(slurm: Slurm) -> None:
    with closing(Bad(changed(time_limit=1e7))) as good:
        slurm.hooks({"address": good.address})
        for words, limit in ((("--time=3",), "00:03:00"), ((), "01:00:00")):
            submitted = slurm.sbatch("--ntasks=2", f"--comment={MARK}", *words)
            assert slurm.job(submitted.job)["TimeLimit"] == limit
            slurm.run("scancel", str(submitted.job))


@pytest.mark.parametrize("words", [("--comment=metasched:off " + MARK,), ("--nodelist=a1", f"--comment={MARK}"), ()])
def test_users_who_say_no_or_where_are_left_alone(words: tuple[str, ...], slurm: Slurm) -> None:
    with closing(Bad(changed())) as good:
        slurm.hooks({"address": good.address})
        submitted = slurm.sbatch("--ntasks=2", *words)
    assert slurm.job(submitted.job)["Partition"] == "old"
    slurm.run("scancel", str(submitted.job))


@pytest.mark.parametrize(
    ("rule", "words", "script", "size"),
    [
        ('{ application = "cg", name = "^cg%-(%d+)$" }', ("--job-name=cg-700",), b"#!/bin/sh\ntrue\n", 700),
        ('{ application = "cg", script = "cg%.x %-n (%d+)" }', (), b"#!/bin/sh\n./cg.x -n 900\n", 900),
        ('{ application = "cg", name = "^night", size = 5 }', ("--job-name=nightly",), b"#!/bin/sh\ntrue\n", 5),
    ],
)
def test_rules_recognise_applications(
    rule: str, words: tuple[str, ...], script: bytes, size: int, slurm: Slurm
) -> None:
    with closing(Bad(changed())) as good:
        slurm.hooks({"address": good.address}, f"return {{ {rule} }}\n")
        submitted = slurm.sbatch("--ntasks=2", *words, script=script)
        answer = slurm.run("squeue", "-h", "-o", "%k", "-j", str(submitted.job)).strip()
        assert answer == f"metasched:app=cg,n={size},p=2,placement=0f"
        slurm.run("scancel", str(submitted.job))


def test_rules_that_are_no_lua_are_passed_over(slurm: Slurm) -> None:
    slurm.hooks({"address": "127.0.0.1:1"}, "return { this is not lua")
    assert len(submit_and_compare(slurm, 1)) == 1


def test_the_hook_costs_little(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        closing(Bad(changed())) as good,
        real_slurm.running(tmp_path_factory.mktemp("plain"), hook=False) as plain,
    ):
        slurm.hooks({"address": good.address})
        seconds: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(60):
            for name, cluster in (("with", slurm), ("without", plain)):
                submitted = cluster.sbatch("--ntasks=2", f"--comment={MARK}")
                assert submitted.job, submitted.said
                seconds[name].append(submitted.seconds)
    extra = statistics.median(seconds["with"]) - statistics.median(seconds["without"])
    print(f"sbatch with the hook {1000 * statistics.median(seconds['with']):.1f} ms, overhead {1000 * extra:.1f} ms")
