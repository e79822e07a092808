"""The hook of submissions in the Lua that Slurm runs, fed with answers that are wrong, enormous, or late."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import Ask
from metasched.jobs import LONGEST_MARK, digest, read_mark
from tests.system import test_lua_hook
from tests.system.bad_daemons import FAULTS, GOOD, Bad, changed, http
from tests.system.real_slurm import DEPLOYED
from tests.system.test_slurm_failures import MARK

pytestmark = [pytest.mark.system, pytest.mark.timeout(60)]

LUA = "lua5.1"
#: What Slurm is for the hook: it submits one job and prints what became of it, and what was logged. The clock jumps by
#: a minute once the answer has come, where that is asked for.
DRIVER = """
local json, socket = require("cjson.safe"), require("socket")
local said, jumped, clock, decode = {}, 0, socket.gettime, json.decode
socket.gettime = function() return clock() + jumped end
json.decode = function(text) jumped = tonumber(arg[2]); return decode(text) end
slurm = { SUCCESS = 0 }
for _, name in ipairs({ "log_info", "log_error", "log_user" }) do
  slurm[name] = function(...) said[#said + 1] = string.format(...) end
end
if arg[6] ~= "" then
  function slurm_job_submit(job) job.site = "was here"; return job.name == "refused" and -1 or slurm.SUCCESS end
end
dofile(arg[1])
local job = { comment = arg[3], num_tasks = 2, partition = "new", script = "#!/bin/sh", user_id = 0 }
for name, value in pairs(decode(arg[5])) do job[name] = value end
if job.partition == "" then job.partition = nil end
local parts = { new = { name = "new", nodes = arg[4], state_up = 3, flag_default = 0 } }
parts.new.allow_alloc_nodes = arg[7]
parts.old = { name = "old", nodes = "a[1-9]", state_up = 3, flag_default = 1 }
job.status = slurm_job_submit(job, parts, 0)
if job.status == slurm.SUCCESS then job.status = nil end
job.said = table.concat(said, "; ")
print(json.encode(job))
"""
UNCHANGED = {"comment": MARK, "num_tasks": 2, "partition": "new", "script": "#!/bin/sh", "user_id": 0}
#: Changes the comment of a job, and prints the new one and what was logged; as a site's own script, one refuses.
CHANGER = """
local json, said = require("cjson.safe"), ""
slurm = { SUCCESS = 0, log_info = function(...) said = string.format(...) end }
function slurm_job_modify(job) return job.comment == "refused" and -1 or nil end
dofile(arg[1])
local job = json.decode(arg[2])
local status = slurm_job_modify(job, json.decode(arg[3]), {}, 0)
print(json.encode({ job.comment, said, status }))
"""


def driven(
    folder: Path,
    conf: str,
    *,
    jump: float = 0.0,
    partition: str = "b[1-9999]",
    job: dict[str, object] | None = None,
    chained: bool = False,
    hosts: str = "ALL",
) -> dict[str, Any]:
    """The job, or another one, after the hook with these settings."""
    if not shutil.which(LUA):
        pytest.skip(f"{LUA} is not installed")
    shutil.copy(DEPLOYED / "job_submit.lua", folder)
    (folder / "hooks.conf").write_bytes(os.fsencode(conf))
    (folder / "driver.lua").write_text(DRIVER)
    words = [LUA, str(folder / "driver.lua"), str(folder / "job_submit.lua"), str(jump), MARK, partition]
    words += [json.dumps(job or {}), "chained" if chained else "", hosts]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def submitted(
    folder: Path,
    *,
    jump: float = 0.0,
    partition: str = "b[1-9999]",
    job: dict[str, object] | None = None,
    settings: str = "",
    chained: bool = False,
    hosts: str = "ALL",
    **answer: object,
) -> dict[str, Any]:
    """The job, or another one, after the hook had this answer."""
    with closing(Bad(changed(**answer))) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\n{settings}\n"
        return driven(folder, conf, jump=jump, partition=partition, job=job, chained=chained, hosts=hosts)


def test_a_sound_answer_is_followed(tmp_path: Path) -> None:
    job = submitted(tmp_path)
    assert (job["req_nodes"], job["min_nodes"], job["said"]) == (GOOD["nodes"], 2, "metasched: go")


def test_a_token_that_is_replaced_counts_from_the_next_job_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    change = f'local file = io.open("{token}", "w"); file:write("new\\n"); file:close()\n'
    monkeypatch.setattr(test_lua_hook, "DRIVER", DRIVER.replace("job.status = slurm", f"{change}job.status = slurm"))
    with closing(Bad(changed())) as daemon:
        driven(tmp_path, f"address = {daemon.address}\ntoken_file = {token}\n")
        assert [line for line in daemon.heads[0].split(b"\r\n") if b"Bearer" in line] == [b"Authorization: Bearer new"]


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("app=ü,n=900", "the comment says metasched:app= and then a character other than letters, digits and _=.,+-"),
        ("app=cg,n=9１00", "the comment says metasched:app=cg,n=9 and then a character other than"),
    ],
)
def test_a_mark_that_would_be_read_in_part_is_not_followed(mark: str, said: str, tmp_path: Path) -> None:
    comment = {"comment": f"night metasched:{mark}"}
    job = submitted(tmp_path, job=comment)
    assert said in job.pop("said")
    assert job == UNCHANGED | comment
    assert read_mark(comment["comment"]) is None


@pytest.mark.parametrize("value", [65533, 65534, 65535, 4294967294])
def test_numbers_that_stand_for_nothing_in_shorter_fields_count_as_they_are(value: int, tmp_path: Path) -> None:
    told = {"num_tasks": value, "min_mem_per_node": value, "user_id": value, "cpus_per_task": 65534}
    with closing(Bad(changed())) as daemon:
        driven(tmp_path, f"address = {daemon.address}\ndeadline = 2\n", job=dict(told))
        asked = json.loads(daemon.asked[0])
    expected = (value, value, str(value)) if value < 65536 else (1, None, "0")
    assert (asked["processors"][0], asked.get("memory"), asked["user"]) == expected


def test_only_a_job_on_the_nodes_that_were_judged_is_limited_by_their_prediction(tmp_path: Path) -> None:
    assert submitted(tmp_path)["time_limit"] == 2
    for steer in ("features", "partition"):
        job = submitted(tmp_path, steer=steer, prefer="new")
        assert "time_limit" not in job
        assert "req_nodes" not in job
        assert job.get("prefer") == ("new" if steer == "features" else None)


def test_near_ties_are_handed_to_slurm_joined_by_commas(tmp_path: Path) -> None:
    asked = {"partition": "new,old"}
    job = submitted(tmp_path, job=asked, steer="partition", partitions=["new", "old"])
    assert (job["partition"], "req_nodes" in job, job["said"]) == ("new,old", False, "metasched: go")
    assert submitted(tmp_path, job=asked, partitions=[])["partition"] == "new"
    for wrong in (["new", "other"], ["new", 7], "new,old"):
        job = submitted(tmp_path, job=asked, steer="partition", partitions=wrong)
        assert job["partition"] == ("new" if isinstance(wrong, str) else "new,old")
        assert ("unknown partition" in job["said"]) is not isinstance(wrong, str)
    # A job that named one partition is not sent to another.
    assert "unknown partition" in submitted(tmp_path, steer="partition", partitions=["new", "old"])["said"]


def test_the_clock_is_set_where_the_answer_names_one_and_the_job_none(tmp_path: Path) -> None:
    job = submitted(tmp_path, frequency=1800)
    assert (job["cpu_freq_min"], job["cpu_freq_max"]) == (1_800_000, 1_800_000)
    assert job["comment"].endswith(",frequency=1800")
    assert "cpu_freq_max" not in submitted(tmp_path)
    assert "cpu_freq_max" not in submitted(tmp_path, frequency="fast")


NO_VALUE = 4294967294


@pytest.mark.parametrize(
    ("comment", "options", "asked", "noted"),
    [
        ("", {"cpu_freq_min": NO_VALUE, "cpu_freq_max": NO_VALUE, "cpu_freq_gov": NO_VALUE}, None, 1800),
        ("", {"cpu_freq_max": 2_400_000, "cpu_freq_min": NO_VALUE}, {"frequency": 2400}, 2400),
        ("", {"cpu_freq_max": 2_400_500, "cpu_freq_min": 2_400_500}, {"frequency": 2400.5}, 2400.5),
        (",frequency=1200", {}, {"frequency": 1200}, 1200),
        (",frequency=1200", {"cpu_freq_max": 2_400_000}, {"frequency": 1200}, 1200),
        ("", {"cpu_freq_max": 2_400_000, "cpu_freq_min": 1_200_000}, {"keeps_clock": True}, None),
        ("", {"cpu_freq_max": 2_400_000, "cpu_freq_gov": 0x84000000}, {"keeps_clock": True}, None),
        ("", {"cpu_freq_gov": 0x82000000}, {"keeps_clock": True}, None),
        ("", {"cpu_freq_max": 0x80000001}, {"keeps_clock": True}, None),
    ],
    ids=str,
)
def test_a_job_keeps_the_clock_that_it_says_and_is_predicted_at_it(
    comment: str, options: dict[str, object], asked: dict[str, object] | None, noted: float | None, tmp_path: Path
) -> None:
    with closing(Bad(changed(frequency=1800))) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\n"
        job = driven(tmp_path, conf, job={"comment": f"metasched:app=cg,n=900{comment}", **options})
        question = json.loads(daemon.asked[0])
    assert {name: question[name] for name in ("frequency", "keeps_clock") if name in question} == (asked or {})
    assert Ask.model_validate(question)
    if asked is not None:
        assert {name: job.get(name) for name in options} == options
        assert options or "cpu_freq_max" not in job
    found = read_mark(job["comment"])
    assert found is not None
    assert (found.placement, found.settings.frequency) == (GOOD["id"], noted)
    # The predicted time is not that of a clock which is not known.
    assert ("time_limit" in job) is (noted is not None)


def test_a_file_stops_the_hook_whatever_the_daemon_does(tmp_path: Path) -> None:
    (tmp_path / "metasched.off").touch()
    assert submitted(tmp_path) == UNCHANGED | {"said": ""}
    elsewhere = tmp_path / "elsewhere"
    assert submitted(tmp_path, settings=f"off = {elsewhere}")["req_nodes"] == GOOD["nodes"]
    elsewhere.touch()
    assert submitted(tmp_path, settings=f"off = {elsewhere}") == UNCHANGED | {"said": ""}


@pytest.mark.parametrize(
    "requested",
    [
        {"tres_per_node": "gres:gpu:a100:2"}, {"tres_per_job": "gres:gpu:2"}, {"tres_per_task": "gres:gpu:1"},
        {"tres_per_socket": "gres/gpu:1"}, {"tres_per_task": "cpu=1,gres/gpu=1"}, {"gres": "gpu:1"},
        {"tres_per_node": "gres/fpga:1"},
    ],
    ids=str,
)  # fmt: skip
def test_jobs_that_requestedother_resources_are_left_alone(requested: dict[str, str], tmp_path: Path) -> None:
    assert submitted(tmp_path, job=requested) == UNCHANGED | requested | {"said": ""}


def test_a_job_whose_processes_share_processors_is_left_alone(tmp_path: Path) -> None:
    crowded = {"overcommit": 1}
    assert submitted(tmp_path, job=crowded) == UNCHANGED | crowded | {"said": ""}
    for alone in (0, 254):
        assert submitted(tmp_path, job={"overcommit": alone})["req_nodes"] == GOOD["nodes"]


@pytest.mark.parametrize(
    "said",
    [
        {"ntasks_per_socket": 2}, {"ntasks_per_core": 1}, {"threads_per_core": 1}, {"sockets_per_node": 1},
        {"cores_per_socket": 4}, {"pn_min_cpus": 4}, {"pn_min_tmp_disk": 1}, {"contiguous": 1},
        {"ntasks_per_node": 2, "pn_min_cpus": 4},
    ],
    ids=str,
)  # fmt: skip
def test_a_job_that_says_what_it_needs_within_a_node_is_left_alone(said: dict[str, int], tmp_path: Path) -> None:
    assert submitted(tmp_path, job=said) == UNCHANGED | said | {"said": ""}
    unset = {"contiguous": 0} | {
        name: 4294967294 if name == "pn_min_tmp_disk" else 65534 for name in said if name != "contiguous"
    }
    assert submitted(tmp_path, job=unset)["req_nodes"] == GOOD["nodes"]
    assert submitted(tmp_path, job={"ntasks_per_node": 2, "pn_min_cpus": 2})["req_nodes"] == GOOD["nodes"]


def test_no_comment_becomes_longer_than_slurm_takes(tmp_path: Path) -> None:
    marked = submitted(tmp_path)["comment"]
    for longest in (1024, 1025):
        own = MARK + " " + "x" * (longest - len(marked) - 1)
        job = submitted(tmp_path, job={"comment": own})
        assert job["comment"] == (own.replace(MARK, marked) if longest == 1024 else own)
        assert ("req_nodes" in job) is (longest == 1024)


def test_no_mark_becomes_longer_than_is_read(tmp_path: Path) -> None:
    added = len(submitted(tmp_path)["comment"]) - len(MARK)
    for longest in (LONGEST_MARK, LONGEST_MARK + 1):
        room = longest - added - len(MARK.removeprefix("metasched:"))
        own = MARK + "".join(f",q{k:02}={'1' * 36}" for k in range(room // 41))
        own += f",r={'1' * (longest - added - len(own.removeprefix('metasched:')) - 3)}"
        job = submitted(tmp_path, job={"comment": own})
        assert (read_mark(job["comment"]) or read_mark(MARK)).placement == (
            GOOD["id"] if longest == LONGEST_MARK else None
        )
        assert (job["comment"] == own) is (longest > LONGEST_MARK)
        assert ("req_nodes" in job) is (longest == LONGEST_MARK)


def test_a_job_that_could_not_be_released_is_not_bound_to_nodes(tmp_path: Path) -> None:
    """The daemon releases jobs by the placement in their comment."""
    job = submitted(tmp_path, settings="mark = no", prefer="fast")
    assert (job["comment"], job.get("req_nodes"), job["prefer"]) == (MARK, None, "fast")
    assert "time_limit" not in job
    assert (job["partition"], job["min_nodes"]) == (GOOD["partition"], GOOD["node_count"])
    assert "prefer" not in submitted(tmp_path, settings="mark = no", steer="partition", prefer="fast")


def test_no_time_limit_falls_below_the_least_that_the_job_asks_for(tmp_path: Path) -> None:
    assert submitted(tmp_path, job={"time_min": 20})["time_limit"] == 20
    assert submitted(tmp_path, job={"time_min": 20, "time_limit": 30})["time_limit"] == 20
    assert submitted(tmp_path, job={"time_min": 4294967294})["time_limit"] == 2


def test_no_job_gets_more_or_fewer_nodes_than_it_asks_for(tmp_path: Path) -> None:
    for least, most, advised in (
        (2, 2, True),
        (1, 4, True),
        (1, 1, False),
        (3, 4, False),
        (4294967294, 4294967294, True),
    ):
        asked = {"min_nodes": least, "max_nodes": most}
        job = submitted(tmp_path, job=asked)
        assert ("req_nodes" in job) is advised, asked
        assert advised or job == UNCHANGED | asked | {
            "said": "metasched: job unchanged: the best placement has another number of nodes than the job asks for"
        }


def test_a_partition_that_the_host_may_not_submit_to_is_not_asked_for(tmp_path: Path) -> None:
    for hosts, advised in (("ALL", True), ("login[1-2],head", True), ("login[3-4]", False)):
        job = submitted(tmp_path, job={"alloc_node": "login2"}, hosts=hosts)
        assert ("req_nodes" in job) is advised, hosts
        assert ("no partition is open to the job" in job["said"]) is not advised


def test_processors_of_a_task_are_no_other_resource(tmp_path: Path) -> None:
    assert submitted(tmp_path, job={"tres_per_task": "cpu=1"})["req_nodes"] == GOOD["nodes"]


@pytest.mark.parametrize(
    ("stated", "requested", "told"),
    [
        ("a100", {"tres_per_node": "gres:gpu:a100:2"}, ""),
        ("a100", {"tres_per_job": "gres:gpu:2"}, ""),
        ("a100", {"tres_per_job": "gres:gpu"}, ""),
        ("none", {}, ""),
        ("a100", {"tres_per_job": "gres:gpu:v100:2"}, "gpu=a100 and the job requests gpu:v100, which counts"),
        ("a100", {"tres_per_task": "cpu=1,gres/gpu:v100=1"}, "gpu=a100 and the job requests gpu:v100, which counts"),
        ("none", {"tres_per_node": "gres:gpu:v100"}, "gpu=none and the job requests gpu:v100, which counts"),
        ("a100", {"tres_per_node": "gres:gpu_direct:1"}, "gpu=a100 and the job requests no GPU"),
        ("a100", {}, "gpu=a100 and the job requests no GPU"),
    ],
)
def test_the_user_is_told_where_the_comment_states_other_gpus_than_the_job_requests(
    stated: str, requested: dict[str, str], told: str, tmp_path: Path
) -> None:
    said = submitted(tmp_path, job=requested | {"comment": f"metasched:app=cg,n=9,gpu={stated}"})["said"]
    said = said.removesuffix("metasched: go").removesuffix("; ")
    assert told in said
    assert said.count("metasched: the comment states") == bool(told)


JOB = {"user_id": 1001, "user_name": "alice", "account": "physics", "partition": "new"}


@pytest.mark.parametrize(
    ("settings", "job", "takes_part"),
    [
        ("canary_users = bob, alice", {}, True),
        ("canary_users = bob,1001", {"user_name": ""}, True),
        ("canary_users = bob,ali", {}, False),
        ("canary_users = 100", {}, False),
        ("canary_accounts = chemistry, physics", {}, True),
        ("canary_accounts = physic", {}, False),
        ("canary_accounts = physics", {"account": None, "default_account": "physics"}, True),
        ("canary_partitions = old", {}, False),
        ("canary_partitions = new", {}, True),
        ("canary_partitions = old\npartitions = any", {"partition": ""}, True),
        ("canary_share = 0", {}, False),
        ("canary_share = 100", {}, True),
        ("canary_users = alice\ncanary_share = 0", {}, False),
        ("canary_users = alice\ncanary_accounts = chemistry", {}, False),
    ],
)
def test_only_those_of_the_canary_take_part(
    settings: str, job: dict[str, object], takes_part: bool, tmp_path: Path
) -> None:
    given = {key: value for key, value in (JOB | job).items() if value is not None}
    done = submitted(tmp_path, job=given, settings=settings)
    assert ("req_nodes" in done) == takes_part


def test_of_a_share_of_the_jobs_about_so_many_take_part(tmp_path: Path) -> None:
    source = (DEPLOYED / "job_submit.lua").read_text()
    number, share = (source[source.index(begin) : source.index(end)]
                     for begin, end in (("local function number", "local function read_rules"),
                                        ("local function listed", "-- Asking ---")))  # fmt: skip
    if not shutil.which(LUA):
        pytest.skip(f"{LUA} is not installed")
    script = tmp_path / "share.lua"
    head = f"{number}local settings = {{ canary_share = '30' }}\nlocal function given(value) return value end\n"
    tail = "local count = 0\nfor _ = 1, 1000 do if takes_part({ user_id = 1 }, {}, 1) then count = count + 1 end end\n"
    script.write_text(f"{head}math.randomseed(7)\n{share}\n{tail}print(count)\n")
    done = subprocess.run([LUA, str(script)], capture_output=True, text=True, check=True)
    assert 250 < int(done.stdout) < 350


def test_a_sites_own_function_comes_first_and_what_it_refuses_is_refused(tmp_path: Path) -> None:
    job = submitted(tmp_path, chained=True)
    assert (job["said"], job["site"], job.get("req_nodes")) == ("metasched: go", "was here", GOOD["nodes"])
    job = submitted(tmp_path, chained=True, job={"name": "refused"})
    assert job == UNCHANGED | {"name": "refused", "site": "was here", "status": -1, "said": ""}


def test_a_held_job_is_left_as_it_was(tmp_path: Path) -> None:
    assert submitted(tmp_path, job={"priority": 0}) == UNCHANGED | {"priority": 0, "said": ""}


def test_a_job_that_names_no_partition_stays_in_the_default_one_unless_the_site_says_otherwise(tmp_path: Path) -> None:
    unchanged = {key: value for key, value in UNCHANGED.items() if key != "partition"}
    job = submitted(tmp_path, job={"partition": ""})
    assert "unknown partition" in job.pop("said")
    assert job == unchanged
    job = submitted(tmp_path, job={"partition": ""}, settings="partitions = any")
    assert (job["partition"], job["req_nodes"]) == ("new", GOOD["nodes"])


@pytest.mark.parametrize(
    ("nodes", "count"), [("b1,b[2-3],b[004,5]", 5), ("b[1-2]x[1-2],b7", 5), ("b[08-11]", 4), ("b[1-10][1-10]", 100)]
)
def test_node_names_are_unfolded_as_slurm_does(nodes: str, count: int, tmp_path: Path) -> None:
    assert submitted(tmp_path, partition=nodes, nodes=nodes, node_count=count)["req_nodes"] == nodes
    assert "unknown node" in submitted(tmp_path, nodes=f"{nodes},c1", node_count=count + 1)["said"]


@pytest.mark.parametrize(
    ("nodes", "count", "why"),
    [
        ("b1,b1", 2, "named twice"),
        ("b[1,1]", 2, "named twice"),
        ("b[1-3]", 2, "too many nodes"),
        ("b1", 2, "miscounts"),
        ("b[1-99999]", 2, "too many nodes"),
        ("b[1-99999999999999999999]", 2, "not a range"),
        ("b[9007199254740993-9007199254740994]", 2, "not a range"),
        ("b[2-1]", 2, "not a range"),
        ("b[1-2]" + "x" * 60_000, 2, "not a node name"),
        ("b" + "[1-1]" * 12_000, 1, "not a node name"),
        ("b[1-10][1-10][1-10][1-10]", 2, "too many nodes"),
        ("b[" + "3-1," * 15_000 + "1]", 1, "not a range"),
        ("b[1-2]", 1e9, "does not count"),
        ("b[1-2]", "2", "does not count"),
    ],
)
def test_nodes_that_cannot_be_leave_the_job_as_it_was(nodes: str, count: object, why: str, tmp_path: Path) -> None:
    job = submitted(tmp_path, nodes=nodes, node_count=count)
    assert why in job.pop("said")
    assert job == UNCHANGED


def test_an_answer_that_is_not_read_in_time_leaves_the_job_as_it_was(tmp_path: Path) -> None:
    job = submitted(tmp_path, jump=60.0)
    assert "the answer was not read in time" in job.pop("said")
    assert job == UNCHANGED


@pytest.mark.parametrize("size", ["12345678901", "12345678901234", "0.1", "1e300", "1400", "9007199254740993"])
def test_a_problem_size_of_many_digits_stays_what_it_is(size: str, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\n"
        job = driven(tmp_path, conf, job={"comment": f"metasched:app=cg,n={size}"})
    mark = read_mark(job["comment"])
    assert mark is not None
    assert mark.placement
    assert mark.problem_size == json.loads(daemon.asked[0])["problem_size"] == pytest.approx(float(size), rel=1e-13)


def test_parameters_of_the_comment_are_kept_beside_what_the_hook_notes(tmp_path: Path) -> None:
    job = submitted(tmp_path, job={"comment": "night metasched:app=cg,n=4000,steps=100,solver=amg run"})
    assert job["said"] == "metasched: go"
    assert job["comment"].startswith("night metasched:app=cg,n=4000,p=")
    assert job["comment"].endswith(",steps=100,solver=amg run")


def test_a_rule_tells_parameters_of_the_command_line(tmp_path: Path) -> None:
    told = 'steps = "%-%-steps[ =](%d+)", solver = "%-s (%w+)", k = "k(%d+)"'
    # None of them can be a parameter: the comment would say another size, other threads, and no number.
    told += ', n = "%-%-steps[ =](%d+)", threads = "%-%-steps[ =](%d+)", limit = "%-%-limit[ =](%w+)"'
    rule = f'command = "amr%.x (%d+)", parameters = {{ {told} }}'
    (tmp_path / "rules.lua").write_text(f'return {{ {{ application = "cg", {rule} }} }}\n')
    argv = ["amr.x", "4000", "--steps=100", "-s", "amg", "--limit=inf"]
    job = submitted(tmp_path, job={"comment": "", "argv": argv})
    assert job["said"] == "metasched: go"
    known, told = job["comment"].split(",")[:2], job["comment"].split(",")[4:]
    assert known == ["metasched:app=cg", "n=4000"]
    assert sorted(told) == ["solver=amg", "steps=100"]


#: A job that says nothing but what it runs, and what the daemon knows of such jobs.
STATED = {"comment": "", "name": "run7.sh", "argv": ["run7.sh", "case.in", "-n", "400"], "script": "#!/bin/sh\nN=5\n"}
SIZED: dict[str, Any] = {"GET": {"names": ["other", "run#.sh"]}, "size": {"application": "cg", "problem_size": 400.0}}


@contextmanager
def sizing(names: object = SIZED["GET"], size: object = SIZED["size"]) -> Iterator[Bad]:
    """A daemon that knows jobs whose problem sizes are numbers that they state."""

    def answer(connection: socket.socket) -> None:
        head = daemon.heads[-1]
        told = names if head.startswith(b"GET") else size if b"/v1/problem-sizes" in head else GOOD
        connection.sendall(http(json.dumps(told).encode()))

    with closing(Bad(answer)) as daemon:
        yield daemon


def stated(folder: Path, daemon: Bad, **changes: object) -> dict[str, Any]:
    """The job after the hook."""
    shutil.copy(DEPLOYED / "job_numbers.lua", folder)
    return driven(folder, f"address = {daemon.address}\ndeadline = 2\n", job=STATED | changes)


def test_a_job_is_placed_by_a_number_that_it_states(tmp_path: Path) -> None:
    with sizing() as daemon:
        job = stated(tmp_path, daemon)
    assert [head.split()[1] for head in daemon.heads] == [b"/v1/problem-sizes"] * 2 + [b"/v1/placements"]
    told, asked = map(json.loads, daemon.asked[1:])
    assert told == {"name": "run7.sh", "arguments": "-n=400", "script": "script:N==5"}
    assert (asked["application"], asked["problem_size"], asked["name"]) == ("cg", 400, "run7.sh")
    # Another job of this name, submitted with it, is not taken for it.
    assert (asked["script"], asked["command"]) == (digest(b"#!/bin/sh\nN=5\n"), digest(b"run7.sh case.in -n 400"))
    assert (job["said"], job["comment"]) == ("metasched: go", "metasched:app=cg,n=400,p=2,placement=0f")
    with sizing() as daemon:  # an annotation of the user counts first
        job = stated(tmp_path, daemon, comment="metasched:app=fft,n=8")
    assert len(daemon.heads) == 1
    assert job["comment"].startswith("metasched:app=fft,n=8,")


def test_of_a_wrapped_command_the_arguments_are_told(tmp_path: Path) -> None:
    script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n./solve case.in -n 400\n"
    with sizing({"names": ["wrap"]}) as daemon:
        stated(tmp_path, daemon, name="wrap", argv=[], script=script)
    assert json.loads(daemon.asked[1]) == {"name": "wrap", "arguments": "-n=400", "script": "script:-n=400"}
    asked = json.loads(daemon.asked[2])
    assert (asked["script"], asked.get("command")) == (digest(script.encode()), None)


@pytest.mark.parametrize(
    ("names", "size", "questions"),
    [
        ({"names": []}, SIZED["size"], 1),
        ({"names": ["run7.sh", "run"]}, SIZED["size"], 1),
        ({"names": "run#.sh"}, SIZED["size"], 1),
        ([1], SIZED["size"], 1),
        (SIZED["GET"], {"application": None, "problem_size": None}, 2),
        (SIZED["GET"], {"application": "rm -r", "problem_size": 400}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": {"a": 1}}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": -1}, 2),
        (SIZED["GET"], "no", 2),
    ],
)
def test_a_job_that_states_no_problem_size_stays_as_it_was(
    names: object, size: object, questions: int, tmp_path: Path
) -> None:
    with sizing(names, size) as daemon:
        job = stated(tmp_path, daemon)
    assert len(daemon.heads) == questions
    said = job.pop("said")
    assert said == "" or ("the answer is not JSON" in said and size == "no")
    assert job == UNCHANGED | STATED


@pytest.mark.parametrize("sound", [True, False])
def test_names_are_asked_for_once_and_not_for_each_job_that_says_nothing(
    sound: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = "for _ = 1, 3 do job.status = slurm_job_submit(job, parts, 0) end\n"
    monkeypatch.setattr(test_lua_hook, "DRIVER", DRIVER.replace("job.status = slurm", f"{again}job.status = slurm"))
    with sizing({"names": ["other"]}) if sound else closing(Bad(FAULTS["fails"])) as daemon:
        job = stated(tmp_path, daemon)
    assert [head[:4] for head in daemon.heads] == [b"GET "]
    assert job["said"] == ("" if sound else "metasched: job unchanged: the daemon answers 503")


def commented(folder: Path, *, comment: str | None, before: str | None) -> list[Any]:
    """The comment of a job after a change, what was logged, and whether Slurm takes the change."""
    if not shutil.which(LUA):
        pytest.skip(f"{LUA} is not installed")
    shutil.copy(DEPLOYED / "job_submit.lua", folder)
    (folder / "changer.lua").write_text(CHANGER)
    jobs = [json.dumps({} if text is None else {"comment": text}) for text in (comment, before)]
    words = [LUA, str(folder / "changer.lua"), str(folder / "job_submit.lua"), *jobs]
    return list(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


PLACED = "metasched:app=cg,n=900,p=2,placement=0a1b"


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("for Ann", f"for Ann {PLACED}"),
        ("", PLACED),
        ("metasched:app=cg,n=800 for Ann", "metasched:app=cg,n=800,placement=0a1b for Ann"),
        ("metasched:off", "metasched:off,placement=0a1b"),
        ("for Ann metasched:off please", "for Ann metasched:off,placement=0a1b please"),
        ("metasched:app=cg,n=800 metasched:off", "metasched:app=cg,n=800 metasched:off,placement=0a1b"),
        ("metasched:off,placement=2c", "metasched:off,placement=2c"),
        ("metasched:off " + "a" * 1000, "metasched:off,placement=0a1b"),
        ("metasched:app=cg,n=much", PLACED),
        ("metasched:app=cg,n=800,placement=2c", "metasched:app=cg,n=800,placement=2c"),
        ("refused", "refused"),
        (None, None),
    ],
)
def test_a_comment_that_is_changed_while_the_job_waits_still_notes_its_placement(
    comment: str | None, kept: str | None, tmp_path: Path
) -> None:
    found = commented(tmp_path, comment=comment, before=f"night {PLACED}")
    assert found == [kept, "", -1 if comment == "refused" else 0]


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("for Ann", "for Ann metasched:off,placement=0a1b"),
        ("metasched:app=cg,n=800", "metasched:app=cg,n=800,placement=0a1b"),
        ("metasched:off", "metasched:off,placement=0a1b"),
    ],
)
@pytest.mark.parametrize("before", ["metasched:off", "metasched:app=cg,n=800 metasched:off"])
def test_a_job_that_is_left_alone_keeps_its_placement_until_it_is_advised_again(
    before: str, comment: str, kept: str, tmp_path: Path
) -> None:
    assert commented(tmp_path, comment=comment, before=f"{before},placement=0a1b") == [kept, "", 0]


@pytest.mark.parametrize("before", [None, "", "for Ann", "metasched:app=cg,n=900", "metasched:placement=0a1b"])
def test_the_comment_of_a_job_that_was_not_placed_may_be_anything(before: str | None, tmp_path: Path) -> None:
    assert commented(tmp_path, comment="for Bob", before=before) == ["for Bob", "", 0]


def test_a_comment_without_room_for_the_placement_is_not_taken(tmp_path: Path) -> None:
    found = commented(tmp_path, comment="a" * 1000, before=PLACED)
    assert (found[0], "no room" in found[1], found[2]) == (PLACED, True, 0)


def test_a_hook_that_is_switched_off_leaves_comments_alone(tmp_path: Path) -> None:
    (tmp_path / "metasched.off").touch()
    assert commented(tmp_path, comment="for Bob", before=PLACED) == ["for Bob", "", 0]
