"""Programs get sound advice within their deadline, or none, whatever the daemon does."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import Ask
from metasched.client import Advice, advice
from metasched.client.connection import ask
from tests.service.daemons import running
from tests.system.bad_daemons import FAULTS, Bad, http

GOOD: dict[str, Any] = {
    "placed": True, "scheduler": "c8", "partition": "new", "nodes": "b[1-2]", "node_count": 2, "processors": 2,
    "time_limit": 120.0, "message": "cg n=500",
    "placement": {"execution_time": 10.0, "interval": {"low": 8.0, "high": 12.0, "level": 0.9}, "slowdown": 1.5},
}  # fmt: skip


def advised(answer: Any, **demands: Any) -> Advice | None:
    body = http(json.dumps(answer).encode())
    with closing(Bad(lambda link: link.sendall(body))) as daemon:
        return advice(f"http://{daemon.address}", "cg", 500, timeout=5.0, **demands)


def test_what_the_daemon_advises_is_given(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        answer = json.loads(
            daemon.placer.answer(
                Ask(application="cg", problem_size=900, max_processors=4), time.time()
            ).model_dump_json()
        )
    found = advised(answer, max_processors=4)
    assert found is not None
    assert (found.nodes, found.processors, found.reason) == (answer["nodes"], answer["processors"], answer["message"])
    assert found.low < found.execution_time < found.high <= (found.time_limit or 0.0)


def test_a_slowdown_by_others_is_part_of_the_time() -> None:
    found = advised(GOOD)
    assert found is not None
    assert (found.low, found.execution_time, found.high, found.time_limit) == (12.0, 15.0, 18.0, 120.0)


@pytest.mark.parametrize(
    "lie",
    [
        {"placed": "yes"}, {"placed": False}, {"partition": "new; rm -rf /"}, {"partition": "--wrap=x"},
        {"partition": None}, {"nodes": ""}, {"nodes": "b1\nb2"}, {"processors": 2.0}, {"processors": True},
        {"processors": 99}, {"processors": -1}, {"node_count": 3}, {"time_limit": "1"}, {"time_limit": -5},
        {"placement": None}, {"placement": []}, {"scheduler": 7}, {"placement": GOOD["placement"] | {"slowdown": 0}},
        {"placement": GOOD["placement"] | {"execution_time": 20.0}},
        {"placement": GOOD["placement"] | {"interval": {"low": float("nan"), "high": 1.0}}},
    ],
    ids=str,
)  # fmt: skip
def test_no_lie_is_believed(lie: dict[str, Any]) -> None:
    assert advised(GOOD, max_processors=16, partitions=["new"]) is not None
    assert advised(GOOD | lie, max_processors=16, partitions=["new"]) is None


def test_an_answer_that_would_take_too_long_to_be_parsed_is_not_read() -> None:
    assert advised(GOOD | {"warnings": ["x" * 4_000_000]}) is not None
    assert advised(GOOD | {"warnings": ["x" * 5_000_000]}) is None


def test_an_answer_to_another_question_is_none() -> None:
    assert advised(GOOD, processors=[4]) is None
    assert advised(GOOD, min_processors=3) is None
    assert advised(GOOD, partitions=["old"]) is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_daemon_gives_no_advice_in_time(fault: str) -> None:
    with closing(Bad(FAULTS[fault])) as daemon:
        assert advice(f"http://{daemon.address}", "cg", 500, timeout=0.3, partitions=["other"]) is None


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "/nowhere/d.sock", "ftp://x", "", "http://[", "http://no.invalid"]
)
def test_a_daemon_that_is_not_there_gives_no_advice(address: str) -> None:
    assert advice(address, "cg", 500, timeout=1.0) is None


def test_an_answer_that_drips_is_broken_off() -> None:
    with closing(Bad(FAULTS["answers byte by byte"])) as daemon, pytest.raises(RuntimeError, match=r"within 0\.3 s"):
        ask(f"http://{daemon.address}", "GET", "/v1/status", timeout=0.3)


def test_an_answer_that_is_cut_off_is_none() -> None:
    whole = http(json.dumps(GOOD).encode())
    with closing(Bad(lambda link: link.sendall(whole[:-10]))) as daemon, pytest.raises(RuntimeError, match="truncated"):
        ask(f"http://{daemon.address}", "GET", "/v1/status", timeout=5.0)


def test_it_loads_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; before = set(sys.modules); import metasched.client\n"
        "own = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(own - sys.stdlib_module_names - {'metasched', 'monitors'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
