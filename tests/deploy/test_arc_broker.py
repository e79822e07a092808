"""The broker of ARC, by ARC's own Python module: targets are ordered by sound answers, and by nothing else."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.system.bad_daemons import FAULTS, Bad, hang, http

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "arc"
#: Where Debian has ARC's module, for its own Python.
MODULES = "/usr/lib/python3/dist-packages"
#: The targets in the order that ARC has them in: queues of computing elements.
TARGETS = (("old", "east.example:8443"), ("fork", "west.example:8444"), ("new", "east.example:8443"), ("x", "z:1"))
JOB = '&(executable="/bin/sh")(count="4")(environment=("METASCHED" "{mark}")){more}'
SITE = {"partition": "", "processors": 4, "completion": 10.0, "reason": "runs 10 s"}
SOUND: dict[str, Any] = {
    "format": 1, "sites": [SITE | {"site": "west"}, SITE | {"site": "east", "partition": "new", "completion": 20.0}],
}  # fmt: skip
AS_BEFORE = ["old", "fork", "new", "x"]


@pytest.fixture(scope="module")
def arc() -> ModuleType:
    """ARC's own module."""
    sys.path.append(MODULES)
    try:
        return pytest.importorskip("arc", reason="needs Debian's python3-nordugrid-arc")
    finally:
        sys.path.remove(MODULES)


@pytest.fixture
def broker(arc: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of the broker, and a matchmaking that finds every target fit but queues named none."""
    monkeypatch.syspath_prepend(DEPLOYED)
    monkeypatch.setattr(arc.Broker, "genericMatch", lambda target, job, usercfg: target.ComputingShare.Name != "none")
    yield importlib.import_module("metasched_broker")
    del sys.modules["metasched_broker"]


@pytest.fixture
def order(arc: ModuleType, broker: ModuleType, tmp_path: Path) -> Callable[..., list[str]]:
    """Submits a job and says in which order the targets were, as ARC's own sorter finds it."""

    def submit(daemon: str, mark: str = "app=cg,n=500", more: str = "", settings: str = "") -> list[str]:
        path = tmp_path / "broker.conf"
        sites = "east = east.example:8443\nwest = elsewhere.example, west.example\n"
        path.write_text(f"[daemon]\naddress = {daemon}\ndeadline = 0.4\n{settings}\n[sites]\n{sites}")
        config = arc.UserConfig("", "", arc.initializeCredentialsType(arc.initializeCredentialsType.SkipCredentials))
        config.Broker("PythonBroker", f"metasched_broker.Broker:{path}")
        jobs = arc.JobDescriptionList()
        assert arc.JobDescription.Parse(JOB.format(mark=mark, more=more), jobs)
        made = broker.Broker(config)
        made.set(jobs.front())
        kept: list[Any] = []
        for queue, host in TARGETS:
            target = arc.ExecutionTarget()
            target.ComputingEndpoint.URLString, target.ComputingShare.Name = f"https://{host}/arex", queue
            assert made.match(target)
            # ARC puts each target before the first one that it is less than.
            place = next((place for place, each in enumerate(kept) if made.lessthan(target, each)), len(kept))
            kept.insert(place, target)
        return [each.ComputingShare.Name for each in kept]

    return submit


def answering(answer: Any) -> Bad:
    body = http(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
    return Bad(lambda link: link.sendall(body))


def test_targets_are_in_the_order_of_their_sites_and_the_advised_queue_before_others(order: Any) -> None:
    with closing(answering(SOUND)) as daemon:
        assert order(f"http://{daemon.address}") == ["fork", "new", "old", "x"]


def test_a_job_without_a_mark_is_left_alone(order: Any) -> None:
    with closing(answering(SOUND)) as daemon:
        assert order(f"http://{daemon.address}", mark="off") == AS_BEFORE
        assert order(f"http://{daemon.address}", mark="app=cg") == AS_BEFORE
        assert order(f"http://{daemon.address}", mark="n=none,app=cg") == AS_BEFORE


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_daemon_leaves_targets_in_the_order_of_arc(order: Any, fault: str) -> None:
    with closing(Bad(FAULTS[fault])) as daemon:
        assert order(f"http://{daemon.address}") == AS_BEFORE


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "/nowhere/d.sock", "", "%s%n"])
def test_a_daemon_that_is_down_leaves_targets_in_the_order_of_arc(order: Any, address: str) -> None:
    assert order(address) == AS_BEFORE


@pytest.mark.parametrize(
    "lie",
    [
        {"format": 2}, {"format": True}, {"sites": None}, {"sites": ["west"]}, {"sites": []},
        *(
            {"sites": [SITE | {"site": "west"} | each]}
            for each in (
                {"site": "west; rm -rf /"}, {"site": "north"}, {"site": None}, {"partition": "-x"}, {"processors": 8},
                {"processors": 4.0}, {"completion": 0}, {"completion": float("nan")}, {"completion": "1"},
            )
        ),
        {"sites": [SITE | {"site": "west"}] * 2},
    ],
    ids=str,
)  # fmt: skip
def test_no_lie_is_believed(order: Any, lie: dict[str, Any]) -> None:
    with closing(answering(SOUND | lie)) as daemon:
        assert order(f"http://{daemon.address}") == AS_BEFORE


def test_a_reason_with_directives_of_printf_is_only_text(order: Any) -> None:
    sites = [each | {"reason": "%n%s%s%s%d\n\x1b[2J" * 50} for each in SOUND["sites"]]
    with closing(answering(SOUND | {"sites": sites})) as daemon:
        assert order(f"http://{daemon.address}") == ["fork", "new", "old", "x"]


def test_settings_that_are_missing_or_wrong_end_no_submission(order: Any) -> None:
    assert order("/nowhere", settings="deadline = soon") == AS_BEFORE
    assert order("/nowhere", settings="[sites") == AS_BEFORE
    assert order("/nowhere", settings="token_file = /nowhere") == AS_BEFORE


@pytest.mark.parametrize(
    ("more", "mark", "size"),
    [
        ("", "", 0.0), ('(inputfiles=("a" "{file}"))', "", 2e-6), ('(inputfiles=("a" "http://x.example/a"))', "", None),
        ('(inputfiles=("a" "http://x.example/a"))', ",data=7.5", 7.5),
    ],
)  # fmt: skip
def test_the_data_of_a_job_are_asked_about(
    order: Any, more: str, mark: str, size: float | None, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"x" * 2000)
    question = asked_of(order, more.format(file=tmp_path / "input"), "app=cg,n=500" + mark)
    assert question.pop("data", None) == size
    assert 0.1 < question.pop("within") <= 0.321
    assert question == {
        "application": "cg", "problem_size": 500.0, "processors": [4], "sites": ["east", "west"], "send": True,
    }  # fmt: skip


def asked_of(order: Any, more: str, mark: str = "app=cg,n=500") -> dict[str, Any]:
    """What the daemon is asked about a job."""
    asked: list[Any] = []

    class Recording(Bad):
        def _one(self, connection: Any) -> None:
            with connection:
                received = b""
                while b"}" not in received:
                    received += connection.recv(65536)
                asked.append(json.loads(received.partition(b"\r\n\r\n")[2]))
                connection.sendall(http(json.dumps(SOUND).encode()))

    with closing(Recording(hang)) as daemon:
        order(f"http://{daemon.address}", mark, more, "send = yes")
    (question,) = asked
    return dict(question)


#: What a server answers to the question for a file's size.
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n"


def test_servers_of_input_files_tell_their_sizes(order: Any, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"x" * 2000)
    with closing(Bad(lambda link: link.sendall(SIZED))) as server:
        files = f'("a" "http://{server.address}/far/a?v=1") ("b" "{tmp_path}/input") ("c" "http://{server.address}/c")'
        assert asked_of(order, f"(inputfiles={files})")["data"] == pytest.approx(6.002e-3)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"garbage\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 5\r\n\r\n", b"",
        SIZED.replace(b"3000000", b"-5"), SIZED.replace(b"3000000", b"9" * 30), None,
    ],
    ids=str,
)  # fmt: skip
def test_a_server_that_tells_no_size_leaves_the_data_unknown_and_the_order_in_time(
    order: Any, said: bytes | None
) -> None:
    with closing(Bad(hang if said is None else lambda link: link.sendall(said))) as server:
        question = asked_of(order, f'(inputfiles=("a" "http://{server.address}/a"))')
    assert "data" not in question
    many = " ".join(f'("a{number}" "http://127.0.0.1:1/{number}")' for number in range(40))
    assert "data" not in asked_of(order, f"(inputfiles={many})")
