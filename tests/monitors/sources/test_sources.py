"""Every source keeps the contract: samples where it can, one line where it cannot, never an exception."""

from __future__ import annotations

import gzip
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_servers import Answer, body, drip, flood, prometheus, serving
from pydantic import ValidationError

from monitors import bounded_commands
from monitors.one_line import one_line
from monitors.sources import bounded_json
from monitors.sources.contract import Readings, Sample
from monitors.sources.prometheus import Prometheus
from monitors.sources.remote_agent import RemoteAgent
from monitors.sources.settings import SourceTable
from monitors.sources.slurm import Slurm, parsed
from monitors.sources.this_host import ThisHost

CLOSED = "http://127.0.0.1:9"


Sinfo = Callable[[str], None]


@pytest.fixture
def sinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sinfo:
    """Makes the program of this name on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(script: str) -> None:
        (tmp_path / "sinfo").write_text(f"#!{sys.executable}\n{script}\n")
        (tmp_path / "sinfo").chmod(0o755)

    return make


def fault_of(readings: Readings) -> str:
    assert readings.samples == ()
    assert readings.fault
    assert readings.fault.isprintable()
    assert len(readings.fault) <= 300
    return readings.fault


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Prometheus(CLOSED, timeout=1.0), "connection"),
        (Prometheus(CLOSED, token_file=Path("/nonexistent/token")), "/nonexistent/token"),
        (RemoteAgent(CLOSED, timeout=1.0), "connection"),
        (ThisHost(lambda: math.nan, lambda: 1.0), "too soon"),
        (ThisHost(lambda: 7.0, lambda: 1.0), "expected a share"),
    ],
)
def test_a_source_that_cannot_answer_says_why_in_one_line(source, said: str) -> None:
    assert said in fault_of(source.read())


@pytest.mark.parametrize(
    ("script", "timeout", "said"),
    [
        ("", 20.0, "Expecting"),
        ("import sys; sys.exit('Unable to\\n contact slurm')", 20.0, "status 1: Unable to contact slurm"),
        ("import time; time.sleep(60)", 0.2, "sinfo took longer than 0.2 s"),
        ("print('{')", 20.0, "Expecting"),
        ("print('[' * 100_000)", 20.0, "recursion"),
        ("print('[]')", 20.0, "lists no nodes"),
        ("print('{\"nodes\": []}')", 20.0, "no node reports its load"),
        ("while True: print('x' * 10_000)", 20.0, "sinfo prints more than 100,000 bytes"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", 20.0, "invalid"),
    ],
)
def test_whatever_sinfo_prints_becomes_a_fault(
    script: str, timeout: float, said: str, sinfo: Sinfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_commands, "MOST_OUTPUT", 100_000 if "while" in script else 1 << 20)
    sinfo(script)
    assert said in fault_of(Slurm(timeout=timeout).read())


def test_where_there_is_no_sinfo_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fault_of(Slurm().read()) == "sinfo cannot be run: No such file or directory"


HOSTILE: dict[str, tuple[Answer, str]] = {
    "drips": (drip, "no whole answer within 0."),
    "floods": (flood, "longer than 1000 bytes"),
    "is no JSON": (body("<html>"), "Expecting value"),
    "is nested": (body("[" * 900), ""),
    "is nested very deeply": (body("[" * 100_000), "longer than 1000 bytes"),
    "is a list": (body("[]"), ""),
    "is empty": (body(""), "Expecting value"),
    "is other JSON": (body('{"data": {"result": [{"metric": {"instance": "n"}, "value": 7}]}}'), ""),
    "refuses": (body("who\n are\x1b[2J you?", 401), "HTTP 401: who are [2J you?"),
    "redirects": (body("", 302, Location="http://127.0.0.1:9/"), "HTTP 302"),
    "is compressed": (body(gzip.compress(b"0" * 10_000_000), 200, **{"Content-Encoding": "gzip"}), ""),
    "has a number that is none": (body('{"node": "n", "time": 1, "available_cpu": "x"}'), ""),
}


@pytest.mark.parametrize(("answer", "said"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("make", [Prometheus, RemoteAgent])
def test_a_server_that_is_slow_broken_or_hostile_becomes_a_fault(
    make, answer: Answer, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_json, "LARGEST", 1000)
    timeout = 0.5 if answer is drip else 10.0
    with serving(answer) as url:
        assert said in fault_of(make(url, timeout=timeout).read())


def test_an_answer_that_is_nested_too_deeply_is_refused() -> None:
    with serving(body("[" * 100_000)) as url:
        assert "nested too deeply" in fault_of(RemoteAgent(url).read())


@given(st.text(max_size=400))
def test_a_fault_is_one_line_whatever_a_server_says(text: str) -> None:
    line = one_line(ValueError(text))
    assert line.isprintable()
    assert 0 < len(line) <= 300


def test_the_token_is_read_anew_at_every_question(tmp_path: Path) -> None:
    shown = []

    def answer(handler) -> None:
        shown.append(handler.headers["Authorization"])
        body("{}")(handler)

    token = tmp_path / "token"
    with serving(answer) as url:
        for secret in ("old", "new"):
            token.write_text(f"{secret}\n")
            RemoteAgent(url, token).read()
    assert shown == ["Bearer old", "Bearer new"]


def test_prometheus_answers_are_joined_by_node() -> None:
    now = 1000.0
    nodes = {
        "n1": {"idle": 3.0, "processors": 4.0, "runnable": 2.0, "time": now, "spare": 125e6 / 2},
        "10.0.0.2": {"idle": 0.0, "processors": 2.0, "runnable": 3.0, "time": now - 40.0},
        "half": {"idle": 1.0, "time": now},
        "odd": {"idle": -5.0, "processors": -1.0, "runnable": -9.0, "time": now, "spare": -1.0},
        "nan": {"idle": math.nan, "processors": 1.0, "runnable": 0.0, "time": now},
    }
    with serving(prometheus(nodes)) as url:
        readings = Prometheus(url, names={"10.0.0.2:9100": "n2"}).read()
    assert readings.fault == ""
    seen = {sample.node: sample for sample in readings.samples}
    assert seen.keys() == {"n1", "n2", "odd"}
    assert (seen["n1"].available_cpu, seen["n1"].available_bandwidth, seen["n1"].time) == (1.0, 500.0, now)
    assert seen["n2"].available_cpu == pytest.approx(2 / 3)  # two others run on two processors: 2 * 1/(1 + 2)
    assert math.isnan(seen["n2"].available_bandwidth)
    assert (seen["n2"].time, seen["odd"].available_bandwidth) == (now - 40.0, 0.0)


def test_the_questions_carry_label_and_matchers() -> None:
    asked = []

    def answer(handler) -> None:
        asked.append(handler.path)
        body('{"status": "success", "data": {"result": []}}')(handler)

    with serving(answer) as url:
        assert "no metrics" in fault_of(Prometheus(url, label="nodename", match='job="compute"').read())
    assert len(asked) == 5
    assert all("nodename" in path and "compute" in path and "instance" not in path for path in asked)


@pytest.mark.parametrize("load", [250, {"set": True, "infinite": False, "number": 250}])
def test_slurm_tells_of_loads_in_hundredths(load: object, sinfo: Sinfo) -> None:
    nodes = [
        {"name": "n0", "cpus": 2, "cpu_load": load},
        {"name": "silent", "cpus": 2, "cpu_load": 4294967294},
        {"name": "unset", "cpus": 2, "cpu_load": {"set": False, "number": 0}},
        {"name": "", "cpus": 2, "cpu_load": 1},
        {"cpus": 2},
        7,
    ]
    sinfo(f"print('''{json.dumps({'nodes': nodes})}''')")
    (sample,) = Slurm(timeout=20.0).read().samples
    assert (sample.node, sample.available_cpu) == ("n0", pytest.approx(2 / 3.5))
    assert math.isnan(sample.available_bandwidth)
    assert abs(sample.time - time.time()) < 60


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda j: st.lists(j, max_size=4)))
def test_whatever_sinfo_prints_is_samples_or_a_fault(value: object) -> None:
    for document in (value, {"nodes": value}, {"nodes": [{"name": value, "cpus": value, "cpu_load": value}]}):
        readings = parsed(document, 0.0)
        assert bool(readings.samples) != bool(readings.fault)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "ganglia"}, "kind"),
        ({"kind": "prometheus"}, "url of the kind prometheus is '', expected http"),
        ({"kind": "agent", "url": "http://:9"}, "url of the kind agent is 'http://:9', expected http"),
        ({"kind": "agent", "url": "ftp://n1"}, "url of the kind agent is 'ftp://n1', expected http"),
        ({"kind": "slurm", "url": "http://n1"}, "url is not a key of the kind slurm"),
        ({"kind": "prometheus", "url": CLOSED, "label": 'a"}'}, "label"),
        ({"kind": "prometheus", "url": CLOSED, "period": 0}, "period"),
        ({"kind": "prometheus", "url": CLOSED, "bandwidth": -1}, "bandwidth"),
        ({"kind": "prometheus", "url": CLOSED, "tokn": "x"}, "tokn"),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SourceTable.model_validate(table)


def test_each_kind_makes_its_source() -> None:
    tables = [{"kind": "prometheus", "url": CLOSED}, {"kind": "agent", "url": CLOSED}, {"kind": "slurm"}]
    names = [SourceTable.model_validate(table).source().name for table in tables]
    assert names == [f"Prometheus {CLOSED}", f"agent {CLOSED}", "Slurm"]


@pytest.mark.parametrize("bad", [("", 0, 0.5, 1), ("n", math.nan, 0.5, 1), ("n", 0, 1.5, 1), ("n", 0, 0.5, -1)])
def test_samples_that_cannot_be_are_refused(bad: tuple[str, float, float, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Sample(*bad)
