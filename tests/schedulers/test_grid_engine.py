"""What Grid Engine 8.1.9 printed becomes partitions, jobs and outcomes; here its commands are scripts that print it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.jobs import read_mark
from metasched.schedulers.contract import BoundJob
from metasched.schedulers.grid_engine.accounting import MOST_READ, read_accounting, read_line
from metasched.schedulers.grid_engine.commands import parsed
from metasched.schedulers.grid_engine.listing import read_listing
from metasched.schedulers.grid_engine.source import GridEngineSource
from metasched.schedulers.grid_engine.submission import comment

RECORDED = Path(__file__).parent / "grid-engine-8.1.9"
QSTAT, CONTEXTS = ((RECORDED / name).read_text() for name in ("qstat.xml", "contexts.xml"))
CONF = "jsv_url none\njsv_allowed_mod ac,h,i,e,o,j,M,N,p,w\n"


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands that print what was recorded, and an accounting; qalter notes what it was asked."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "qstat.xml").write_text(QSTAT)
    (tmp_path / "contexts.xml").write_text(CONTEXTS)
    (tmp_path / "conf").write_text(CONF)
    script(tmp_path, "qstat", f'case "$*" in *-j*) cat {tmp_path}/contexts.xml;; *) cat {tmp_path}/qstat.xml;; esac')
    script(tmp_path, "qconf", f"case $1 in -sconf) cat {tmp_path}/conf;; -sm) id -un;; *) exit 1;; esac")
    script(tmp_path, "qalter", f'printf "%s\\n" "$@" >{tmp_path}/altered')
    (tmp_path / "default" / "common").mkdir(parents=True)
    (tmp_path / "default" / "common" / "accounting").write_bytes((RECORDED / "accounting").read_bytes())
    return tmp_path


def script(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def source(cell: Path, *queues: str) -> GridEngineSource:
    return GridEngineSource("c", queues, root=str(cell))


def pending(number: int, state: str = "qw", host: str = "n1|n2", more: str = "") -> str:
    """A job that waits, as qstat prints one."""
    return f"""<job_list state="pending"><JB_job_number>{number}</JB_job_number><JB_name>w</JB_name>
      <JB_owner>ann</JB_owner><state>{state}</state><JB_submission_time>2026-11-22T10:02:04</JB_submission_time>
      <slots>3</slots><hard_request name="hostname">{host}</hard_request>
      <hard_request name="h_rt">1:0:0</hard_request>{more}</job_list></job_info></job_info>"""


def test_accounting_gives_all_jobs_that_ended_after_a_moment(cell: Path) -> None:
    log = source(cell).accounted(1795341800.0)
    assert log is not None
    assert log.run_time.tolist() == [97.0, 8.0, 8.0]
    assert (log.processors.tolist(), log.wait.tolist()) == ([4, 5, 1], [24.0, 0.0, 0.0])
    assert (log.requested_time[1], log.named("name"), log.named("partition")) == (
        500.0, ["STDIN", 'a<b>&"c', "STDIN"], ["new", "new", "old"]
    )  # fmt: skip
    assert source(cell).accounted(1795341861.0) is None


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a'b", "\u2028x", "=1+1", ""])
def test_no_name_of_a_job_forges_another_in_the_log(cell: Path, name: str) -> None:
    file = cell / "default" / "common" / "accounting"
    lines = [line for line in file.read_text().splitlines() if ":STDIN:11:" in line]
    file.write_text(lines[0].replace(":STDIN:11:", f":{name}:11:") + "\n")
    log = source(cell).accounted(0.0)
    assert log is not None
    assert (len(log), log.processors.tolist()) == (1, [1])


def waits(cell: Path, number: int, **answer: str) -> None:
    (cell / "qstat.xml").write_text(QSTAT.replace("</job_info>\n</job_info>", pending(number, **answer)))


def test_cluster_queues_are_partitions_with_the_free_slots_of_their_hosts(cell: Path) -> None:
    new, old = source(cell).partitions()
    assert (new.name, new.scheduler, new.state.name, new.time_limit, new.releases) == ("new", "c", "c/new", None, True)
    assert (new.state.nodes, new.state.processors.tolist()) == (("n1", "n2"), [2, 1])
    assert (old.state.nodes, old.state.processors.tolist(), old.state.up.tolist()) == (("n1",), [3], [True])
    assert old.state.memory[0] == pytest.approx(23.541 * 1024)
    assert (new.total, old.total) == (None, None)  # both have slots of their own on n1
    assert [each.name for each in source(cell, "old").partitions()] == ["old"]
    with pytest.raises(RuntimeError, match="no queue gpu, expected one of new, old"):
        source(cell, "gpu").partitions()


@pytest.mark.parametrize("state", ["d", "au", "E", "s", "C", "c"])
def test_no_job_is_sent_to_an_instance_that_is_in_some_state(state: str, cell: Path) -> None:
    answer = QSTAT.replace("<arch>lx-amd64</arch>", f"<arch>lx-amd64</arch><state>{state}</state>", 1)
    (cell / "qstat.xml").write_text(answer)
    assert source(cell).partitions()[0].state.up.tolist() == [False, True]


def test_jobs_that_run_are_told_with_their_application_and_their_slots_on_each_host(cell: Path) -> None:
    par, task = source(cell).running()
    assert (dict(zip(par.nodes, par.processors, strict=True)), par.application) == ({"n1": 2, "n2": 3}, "cg")
    assert (par.problem_size, task.nodes, task.application) == (1400.0, ("n1",), "")


def test_the_queue_has_running_jobs_waiting_ones_and_the_tasks_of_arrays(cell: Path) -> None:
    par, task, waiting = source(cell).queue()
    assert (par.number, par.processors, par.limit, par.name) == ("7", 5, 500.0, 'a<b>&"c')
    assert (task.number, task.ran is not None, waiting.number, waiting.ran, waiting.ready) == (
        "11.1", True, "11", None, True
    )  # fmt: skip
    assert waiting.partitions == {"new", "old"}
    waits(cell, 12, state="hqw", more="<hard_req_queue>ne*@n1</hard_req_queue><tasks>1-5:2,9</tasks>")
    last = source(cell).queue()[-1]
    assert (last.ready, last.limit, last.partitions, last.tasks) == (False, 3600.0, frozenset({"new"}), 4)


def test_a_bound_job_is_let_go_with_its_other_requests(cell: Path) -> None:
    waits(cell, 7)
    context = "<VA_value>1400</VA_value>"
    more = "</context_list><context_list><VA_variable>placement</VA_variable><VA_value>0f</VA_value>"
    (cell / "contexts.xml").write_text(CONTEXTS.replace(context, context + more))
    (bound,) = source(cell).bound()
    assert isinstance(bound, BoundJob)
    assert (bound.number, bound.placement, bound.nodes) == ("7", "0f", {"n1", "n2"})
    waits(cell, 7, host="*")
    assert source(cell).bound() == []
    one = CONTEXTS.split("<element>\n      <JB_job_number>11")[0]
    (cell / "contexts.xml").write_text(one + "</djob_info></detailed_job_info>")
    source(cell).release("7", 60.0, 2)
    assert (cell / "altered").read_text().split("\n") == ["-l", "h_rt=500,hostname=*", "7", ""]


@pytest.mark.parametrize(
    ("conf", "may"),
    [
        (CONF, True),
        (CONF.replace("none", "script:/jsv"), False),
        (CONF.replace("none", "script:/jsv").replace("ac,", "ac,l_hard,"), True),
    ],
)
def test_jobs_are_bound_only_where_the_verifier_lets_them_go(conf: str, may: bool, cell: Path) -> None:
    (cell / "conf").write_text(conf)
    assert source(cell).partitions()[0].releases is may
    script(cell, "qconf", "echo somebody else")
    assert source(cell).partitions()[0].releases is False


def test_fates_come_from_the_accounting_once_a_job_is_gone(cell: Path) -> None:
    fates = source(cell).fates({"3", "5.2", "6", "7", "99"})
    completed = {number: fate.completed for number, fate in fates.items()}
    assert completed == {"3": True, "5.2": True, "6": True, "7": None, "99": None}
    assert (fates["5.2"].kind, fates["6"].processes, fates["6"].submitted) == ("array", 1, 1795341751.0)


def test_finished_jobs_are_those_whose_hosts_the_accounting_tells(cell: Path) -> None:
    jobs = {job.job: job for job in source(cell).finished(1795341751.0)}
    assert set(jobs) == {"5.2", "11.1"}  # 6 ended in the second in which it began, 3 and 7 had slots on several hosts
    assert (jobs["5.2"].nodes, jobs["5.2"].user, jobs["5.2"].kind) == (("n1",), "0", "array")
    assert source(cell).finished(2e9) == []


@pytest.mark.parametrize(("failed", "status"), [(0, 0), (0, 3), (1, 0), (100, 137)])
def test_a_failure_and_an_exit_status_are_different_cells_of_the_accounting(failed: int, status: int) -> None:
    line = f"new:n2:root:ann:cg:7:sge:0:100:110:118:{failed}:{status}:8" + 17 * ":0" + ":NONE:staff:mpi:5:0:0:0:0"
    job = read_line(line + ":-pe mpi 5:0:0:0:NONE:0:0:0")
    assert job is not None
    assert (job.failed, job.exit_status, job.completed) == (failed > 0, status, failed == status == 0)


def test_an_accounting_that_is_not_there_is_empty_and_of_a_long_one_the_end_is_read(tmp_path: Path) -> None:
    assert list(read_accounting(tmp_path / "none")) == []
    recorded = (RECORDED / "accounting").read_text()
    path = tmp_path / "long"
    with path.open("w") as file:
        file.write("x:" * 100 + "\n")
        file.seek(MOST_READ)
        file.write("\n" + recorded)
    assert [job.number for job in read_accounting(path)] == [
        job.number for job in read_accounting(RECORDED / "accounting")
    ]


@pytest.mark.parametrize("printed", ["", "<job_info>", "<other/>", "{}", "<!DOCTYPE a [<!ENTITY b 'c'>]><job_info/>"])
def test_what_is_no_listing_is_one_clear_error(printed: str, cell: Path) -> None:
    (cell / "qstat.xml").write_text(printed)
    with pytest.raises(RuntimeError, match="qstat"):
        source(cell).partitions()


def test_a_command_that_fails_or_hangs_is_one_clear_error(cell: Path) -> None:
    script(cell, "qstat", "echo no qmaster >&2; exit 1")
    with pytest.raises(RuntimeError, match="status 1: no qmaster"):
        source(cell).queue()
    script(cell, "qstat", "sleep 60")
    with pytest.raises(RuntimeError, match="longer than"):
        GridEngineSource("c", root=str(cell), timeout=0.1).queue()


@given(st.text())
def test_forged_numbers_and_names_are_refused_or_taken_as_text(text: str) -> None:
    spelt = text.replace("&", "&amp;").replace("<", "%lt;").replace(">", "&gt;")
    for name in ("slots_total", "JB_job_number", "JB_name", "name"):
        start = QSTAT.index(f"<{name}>") + len(name) + 2
        forged = QSTAT[:start] + spelt + QSTAT[QSTAT.index(f"</{name}>", start) :]
        try:
            listing = read_listing(parsed(forged))
        except ValueError:
            continue
        assert all(each.slots >= 0 and not math.isinf(each.slots) for each in listing.instances)


def test_the_mark_in_a_context_is_that_of_a_comment() -> None:
    mark = read_mark(comment("foo=bar,metasched=app=cg,n=1400,p=4,placement=0f"))
    assert mark is not None
    assert (mark.application, mark.problem_size, mark.processors, mark.placement) == ("cg", 1400.0, 4, "0f")
    assert comment("foo=bar") == comment("") == ""
    assert read_mark(comment("metasched=off")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<html/>", "^its first element is html, expected job_info$"),
        (
            "<job_info><queue_info><Queue-List><name>all.q</name></Queue-List></queue_info></job_info>",
            "^a queue instance is called 'all.q', expected QUEUE@HOST$",
        ),
        ("<job_info><job_info><job_list><JB_job_number>7x</JB_job_number></job_list></job_info></job_info>", "'7x'$"),
    ],
)
def test_a_listing_of_another_form_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_listing(parsed(text))


def test_what_is_no_xml_and_an_accounting_that_cannot_be_read_are_named(cell: Path) -> None:
    script(cell, "qstat", "echo busy")
    with pytest.raises(RuntimeError, match=r"^qstat .* does not print XML: "):
        GridEngineSource("c", cell="default", root=str(cell)).partitions()
    with pytest.raises(RuntimeError, match=r"default cannot be read: is a directory$"):
        list(read_accounting(cell / "default"))
    assert list(read_accounting(cell / "none")) == []
