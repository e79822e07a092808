"""The agent: how it is configured, what it keeps, how it sends, and that it goes on through failures."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from waiting import until

from monitors.agent.agent import Agent
from monitors.agent.sender import BATCH, LONGEST_WAIT, PATH, Sender
from monitors.agent.server import SampleServer
from monitors.agent.settings import PREFIX, Settings, read_settings
from monitors.agent.spool import KEPT_ASIDE, Spool
from monitors.few_callers import MOST
from monitors.sources.contract import Readings, Sample
from monitors.sources.remote_agent import RemoteAgent
from tests.free_ports import free_port


class Daemon(ThreadingHTTPServer):
    """Takes loads in like the daemon, or answers with another status."""

    def __init__(self, port: int = 0) -> None:
        self.statuses: list[int] = []
        self.body = b""
        self.taken: list[tuple[str, float, float, float]] = []
        self.poison: float | None = None
        self.speaks_for: str | None = None
        super().__init__(("127.0.0.1", port), Intake)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class Intake(BaseHTTPRequestHandler):
    server: Daemon

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        allowed = self.headers["Authorization"] == "Bearer right" and self.path == PATH
        status = self.server.statuses.pop(0) if self.server.statuses else 200 if allowed else 401
        if self.server.speaks_for is not None and document["node"] != self.server.speaks_for:
            status = 403
        if any(sample[0] == self.server.poison for sample in document["samples"]):
            status = 422
        if status == 200:
            self.server.taken += [(document["node"], *sample) for sample in document["samples"]]
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon
        daemon.shutdown()


def filled(count: int, path: Path = Path(":memory:"), capacity: int = 100_000) -> Spool:
    spool = Spool(path, capacity)
    for moment in range(count):
        spool.keep(Sample("n0", float(moment), 0.5, 90.0))
    return spool


def test_a_token_that_everybody_may_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    path.write_text("secret\n")
    for mode, warned in ((0o600, False), (0o640, False), (0o644, True)):
        path.chmod(mode)
        assert read_settings(None, {"METASCHED_AGENT_TOKEN_FILE": str(path)}).token == "secret"
        assert (f"METASCHED_AGENT_TOKEN_FILE: everybody on this host may use {path}" in caplog.text) == warned


def test_devices_without_end_hold_no_settings_and_no_secret() -> None:
    with pytest.raises(ValueError, match="/dev/zero: has more than 1048576 bytes"):
        read_settings(Path("/dev/zero"), {})
    with pytest.raises(ValueError, match="METASCHED_AGENT_TOKEN_FILE: has more than 1048576 bytes"):
        read_settings(None, {"METASCHED_AGENT_TOKEN_FILE": "/dev/zero"})


def test_what_was_kept_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from monitors.agent.spool import Spool\nfrom monitors.sources.contract import Sample\n"
        f"spool = Spool(Path({str(path)!r}))\nnumber = 0\n"
        "while True:\n    spool.keep(Sample('n0', float(number), 0.5, 9.0))\n    print(number, flush=True)\n"
        "    number += 1\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [int(next(child.stdout)) for _ in range(20)]
    child.send_signal(signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().splitlines()]
    child.wait()
    kept = [sample.time for _, sample in Spool(path).oldest(100_000)]
    assert kept[: len(said)] == [float(number) for number in said]


def test_a_full_spool_drops_the_oldest_and_logs_when_it_begins_to(caplog: pytest.LogCaptureFixture) -> None:
    spool = filled(25, capacity=20)
    assert len(spool) == 20
    assert spool.oldest(1)[0][1].time == 5.0
    line = ":memory: is full: the oldest samples are dropped, 20 are kept"
    assert caplog.messages == [line]
    spool.forget(spool.oldest(10)[-1][0])
    for moment in range(11):
        spool.keep(Sample("n0", 100.0 + moment, 0.5, 90.0))
    assert caplog.messages == [line] * 2


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data), 7):
        data[at] ^= 0xFF
    path.write_bytes(data)


def changed(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file:
            for statement in statements:
                file.execute(statement)
            file.commit()

    return change


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_text("not a database at all, but long enough to look like one" * 90),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5000]),
    "flipped": flipped,
    "a table of another program": changed("DROP TABLE samples", "CREATE TABLE samples (x)"),
    "values of another kind": changed("UPDATE samples SET cpu = 'x' WHERE number = 3"),
    "a log of garbage": lambda path: path.with_name("spool.db-wal").write_bytes(os.urandom(9000)),
}
#: Damage that leaves what was written readable: there is nothing to set aside.
HARMLESS = {"a log of garbage"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_spool_is_set_aside_and_the_node_goes_on(
    damage: str, tmp_path: Path, daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    filled(300, path).close()
    DAMAGES[damage](path)
    spool = Spool(path)
    sender = Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right")
    for moment in range(1000, 1003):
        spool.keep(Sample("n0", float(moment), 0.5, 90.0))
        sender.send()
    assert [sample[1] for sample in daemon.taken][-2:] == [1001.0, 1002.0]
    aside = list(tmp_path.glob("spool.db.damaged-*"))
    assert bool(aside) == (damage not in HARMLESS) == ("is damaged" in caplog.text)


def test_a_spool_that_is_damaged_while_it_is_used_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    spool = filled(3000, path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    flipped(path)
    spool._file.execute("PRAGMA shrink_memory")
    spool.keep(Sample("n0", 9000.0, 0.5, 90.0))
    assert spool.oldest(5000)[-1][1].time == 9000.0
    spool.keep(Sample("n0", 9001.0, 0.5, 90.0))
    assert [sample.time for _, sample in spool.oldest(5000)][-1] == 9001.0
    assert len([each for each in tmp_path.glob("spool.db.damaged-*") if each.suffix[-1].isdigit()]) == 1


def test_only_the_newest_damaged_spools_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    for _ in range(KEPT_ASIDE + 2):
        path.write_bytes(b"x" * 9000)
        Spool(path).close()
    assert len(list(tmp_path.glob("spool.db.damaged-*"))) == KEPT_ASIDE


def test_a_spool_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "spool.db").mkdir()
    with pytest.raises(ValueError, match=r"spool\.db"):
        Spool(tmp_path / "spool.db")


def test_all_samples_arrive_in_order_and_the_spool_is_empty(daemon: Daemon) -> None:
    spool = filled(BATCH + 7)
    sent = Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right").send()
    assert (sent, len(spool)) == (BATCH + 7, 0)
    assert daemon.taken == [("n0", float(moment), 0.5, 90.0) for moment in range(BATCH + 7)]


def test_of_several_daemons_the_one_that_takes_samples_is_found_at_once(daemon: Daemon) -> None:
    gone, leading = "http://127.0.0.1:9", f"http://127.0.0.1:{daemon.server_port}/"
    for urls in (f"{gone} {leading}", f"{leading} {gone}"):
        spool = filled(3)
        sender = Sender(spool, urls, "right")
        assert (sender.send(), len(spool), sender.failures) == (3, 0, 0)
    daemon.statuses = [503]
    spool.keep(Sample("n0", 99.0, 0.5, 90.0))
    assert (sender.send(), len(spool), sender.failures) == (0, 1, 1)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_failure_keeps_the_samples_and_waits(daemon: Daemon, status: int) -> None:
    now = [0.0]
    spool = filled(3)
    sender = Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right", clock=lambda: now[0])
    daemon.statuses = [status]
    assert sender.send() == 0
    assert len(spool) == 3
    assert sender.send() == 0  # too soon: the daemon is not even asked
    assert not daemon.taken
    now[0] += LONGEST_WAIT
    assert sender.send() == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"detail": "this agent may only send loads of node a1"}',
            "HTTP 403 (this agent may only send loads of node a1) from",
        ),
        (b'{"detail": "a\\u001b[2J"}', "HTTP 403 (a [2J) from"),
        (b"[]", "HTTP 403 from"),
        (b"", "HTTP 403 from"),
    ],
)
def test_why_the_daemon_refuses_is_logged(
    daemon: Daemon, body: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.statuses, daemon.body = [403], body
    assert Sender(filled(1), f"http://127.0.0.1:{daemon.server_port}", "right").send() == 0
    assert said in caplog.text


def test_one_sample_that_can_never_be_taken_costs_no_other(daemon: Daemon) -> None:
    spool = filled(BATCH + 2)
    sender = Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right")
    daemon.poison = 123.0
    assert sender.send() == BATCH + 1
    assert [sample[1] for sample in daemon.taken] == [float(m) for m in range(BATCH + 2) if m != 123]


def test_samples_of_a_renamed_node_go_under_the_name_they_were_taken_with(daemon: Daemon) -> None:
    spool = filled(3)
    spool.keep(Sample("n1", 3.0, 0.5, 90.0))
    assert Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right").send() == 4
    assert [sample[0] for sample in daemon.taken] == ["n0", "n0", "n0", "n1"]


def test_samples_of_former_names_do_not_keep_a_renamed_node_from_sending(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    spool, now = filled(300), [0.0]
    for name in ("n7", "n8"):
        for number in range(3):
            spool.keep(Sample(name, 1000.0 + number, 0.5, 90.0))
    sender = Sender(spool, f"http://127.0.0.1:{daemon.server_port}", "right", clock=lambda: now[0])
    daemon.speaks_for = "n9"
    assert sender.send() == 0
    assert (len(spool), sender.failures) == (306, 1)  # the token may be the wrong one: nothing is dropped for it
    daemon.speaks_for, now[0] = "n8", 1e3
    assert sender.send() == 3
    assert ([each[0] for each in daemon.taken], len(spool)) == (["n8"] * 3, 0)
    assert "samples of n7, a name before, are dropped when later ones are accepted" in caplog.text
    spool.keep(Sample("n8", 2000.0, 0.5, 90.0))
    assert sender.send() == 1


@pytest.mark.parametrize("endless", [b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 1000, b"HTTP/1.0 200 OK\r\n\r\n "])
def test_a_daemon_whose_answer_does_not_end_keeps_no_samples_from_the_next(daemon: Daemon, endless: bytes) -> None:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):
                client.sendall(endless)
                while not ended.wait(0.01):
                    client.sendall(endless[-1:] * (1000 if len(endless) > 1000 else 1))

        threading.Thread(target=answer, daemon=True).start()
        urls = f"http://127.0.0.1:{server.getsockname()[1]} http://127.0.0.1:{daemon.server_port}"
        assert Sender(filled(3), urls, "right", timeout=0.5).send() == 3
        ended.set()


def test_samples_that_a_full_disk_does_not_take_are_sent_from_memory(
    daemon: Daemon, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"http://127.0.0.1:{daemon.server_port}"
    settings = {"daemon": url, "token": "right", "spool": str(tmp_path / "spool.db"), "interface": "lo"}
    agent = Agent(
        read_settings(None, {f"METASCHED_AGENT_{name.upper()}": text for name, text in settings.items()}),
        source=Counting(),
    )
    agent._spool._file.execute("PRAGMA max_page_count=1")
    for _ in range(600):
        agent.sample()
    assert 0 < len(agent._spool) < 600
    agent.send()
    assert sorted(sample[1] for sample in daemon.taken) == [float(moment) for moment in range(600)]
    agent.sample()
    assert (len(agent._spool), len(agent._memory)) == (1, 0)
    assert caplog.text.count("the spool cannot be written: ") == 1

    def full(last: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    agent._spool.forget = full  # type: ignore[method-assign]
    agent._memory.keep(Sample("n0", 1000.0, 0.5, 90.0))
    agent.send()
    assert [sample[1] for sample in daemon.taken][-2:] == [600.0, 1000.0]
    assert "cannot be removed from the spool: database or disk is full" in caplog.text


class Counting:
    """A source whose samples are numbered by their times."""

    name = "counting"

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def read(self) -> Readings:
        return Readings([Sample("n0", float(next(self._numbers)), 0.5, 90.0)])


def test_waits_grow_with_failures_up_to_a_limit_and_differ() -> None:
    waits = []
    for _ in range(2):
        now, row = [0.0], []
        sender = Sender(filled(1), "http://127.0.0.1:9", "x", clock=lambda now=now: now[0], timeout=0.5)
        for _ in range(12):
            sender.send()
            start = now[0]
            while sender._not_before > now[0]:
                now[0] += 0.5
            row.append(now[0] - start)
        waits.append(row)
    assert waits[0] != waits[1]
    for row in waits:
        assert row[0] <= 2.5
        assert max(row) <= LONGEST_WAIT + 0.5
        assert row[-1] >= LONGEST_WAIT / 2 - 0.5


def test_settings_come_from_the_file_and_the_environment_goes_over_it(tmp_path: Path) -> None:
    file, secret = tmp_path / "agent.toml", tmp_path / "token"
    file.write_text('node = "n7"\ninterval = 5\n[members]\nn7 = "10.0.0.7:7071"\n')
    secret.write_text("hidden\n")
    environment = {"METASCHED_AGENT_INTERVAL": "2.5", "METASCHED_AGENT_TOKEN_FILE": str(secret), "PATH": "/bin"}
    settings = read_settings(file, environment)
    assert (settings.node, settings.interval, settings.token) == ("n7", 2.5, "hidden")
    assert settings.members == {"n7": "10.0.0.7:7071"}


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        ("intervall = 5", {}, "intervall"),
        ("interval = -5", {}, "interval"),
        ('daemon = "ftp://x"', {}, "daemon"),
        ('listen = "nowhere"', {}, "host:port"),
        ("interval = ", {}, "agent.toml"),
        ("interval = " + "9" * 5000, {}, "agent.toml"),
        ("", {"METASCHED_AGENT_MEMBERS": "n0"}, "name=host:port"),
        ("", {"METASCHED_AGENT_TOKEN_FILE": "/does/not/exist"}, "TOKEN_FILE"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(
    tmp_path: Path, text: str, environment: dict[str, str], message: str
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_settings(file, environment)
    assert "\n" not in str(caught.value)


def test_the_example_settings_are_good() -> None:
    example = Path(__file__).parents[3] / "deploy" / "agent.toml"
    assert read_settings(example, {}).interval == 10.0


def test_the_example_names_every_setting_with_its_default() -> None:
    text = (Path(__file__).parents[3] / "deploy" / "agent.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(re.sub(r"(?m)^# (\[|\w+ = )", r"\1", text))
    Settings(**shown)
    secrets = {"token", "probe_secret", "sites_secret", "sites_token"}
    assert Settings.model_fields.keys() - shown.keys() == secrets
    assert {each for each in secrets if f"{PREFIX}{each.upper()}_FILE" not in text} == set()
    numbers = {name: each.default for name, each in Settings.model_fields.items() if type(each.default) in (int, float)}
    assert {name: shown[name] for name in numbers} == numbers


def test_a_remote_agent_is_read_by_bearers_of_the_token_only(tmp_path: Path) -> None:
    for token in ("right", "wrong"):
        (tmp_path / token).write_text(token)
    sample = Sample("n0", time.time(), 0.5, 90.0)
    with SampleServer(("127.0.0.1", 0), "right", lambda: sample) as server:
        server.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        (seen,) = RemoteAgent(url, tmp_path / "right").read().samples
        assert seen == sample
        assert "401" in RemoteAgent(url, tmp_path / "wrong").read().fault
        assert "401" in RemoteAgent(url).read().fault
        headers = {"Authorization": "Bearer right"}
        statuses = {path: httpx.get(url + path, headers=headers, timeout=30.0).status_code for path in ("/", "/sample")}
        assert statuses == {"/": 404, "/sample": 200}
        server.shutdown()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleServer]:
    """The server of an agent that waits for questions only a moment."""
    monkeypatch.setattr("monitors.agent.server.PATIENCE", 0.5)
    with SampleServer(("127.0.0.1", 0), "right", lambda: Sample("n0", 1.0, 0.5, 90.0)) as server:
        server.start()
        yield server
        server.shutdown()


def test_a_question_that_drips_in_is_given_up(server: SampleServer) -> None:
    with socket.create_connection(server.server_address[:2], timeout=0.1) as slow:

        def hung_up() -> bool:
            try:
                slow.sendall(b"x")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        assert until(hung_up)


def test_no_more_than_a_few_callers_are_answered_at_a_time(
    server: SampleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitors.agent.server.PATIENCE", 60.0)
    monkeypatch.setattr("monitors.agent.server._Asker.timeout", 60.0)
    before = threading.active_count()
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(server.server_address[:2])) for _ in range(3 * MOST)]
        hung_up, _, _ = select.select(silent[MOST:], [], [], 30.0)
        assert hung_up
        assert threading.active_count() - before <= MOST
        for each in silent[MOST:]:
            each.settimeout(30.0)
            assert each.recv(1) == b""

    def answered() -> bool:
        url = f"http://127.0.0.1:{server.server_address[1]}/sample"
        return httpx.get(url, headers={"Authorization": "Bearer right"}, timeout=30.0).status_code == 200

    assert until(answered, despite=httpx.HTTPError)


def test_silent_callers_of_two_hosts_leave_room_for_questions(
    server: SampleServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("monitors.agent.server.PATIENCE", 60.0)
    monkeypatch.setattr("monitors.agent.server._Asker.timeout", 60.0)
    port = server.server_address[1]
    with ExitStack() as stack:
        for own in ("127.0.0.2", "127.0.0.3"):
            for _ in range(MOST):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(own, 0)))
        for _ in range(3):
            answer = httpx.get(
                f"http://127.0.0.1:{port}/sample", headers={"Authorization": "Bearer right"}, timeout=30.0
            )
            assert answer.status_code == 200
    assert capfd.readouterr().err == ""


#: An agent that is sent signals from inside, in one way or another.
SIGNALLED = """
import os, signal, sys, threading
from monitors.agent.agent import Agent
from monitors.agent.settings import read_settings

agent = Agent(read_settings(None))
agent.stop_on(signal.SIGTERM)

def trace(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    return trace

def interrupt():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

{begin}
agent.run()
sys.settrace(None)
"""


@pytest.mark.parametrize("begin", ["sys.settrace(trace)", "threading.Timer(0.5, interrupt).start()"])
def test_a_signal_ends_it_whichever_line_or_thread_it_interrupts(begin: str, tmp_path: Path) -> None:
    variables = {"SPOOL": str(tmp_path / "spool.db"), "NODE": "n0", "INTERVAL": "60", "PROBE_BUDGET": "0"}
    environment = os.environ | {f"{PREFIX}{name}": text for name, text in variables.items()}
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED.format(begin=begin)], env=environment, timeout=60, check=False
    )
    assert done.returncode == 0


def start_agent(tmp_path: Path, **settings: str) -> subprocess.Popen[str]:
    environment = {f"METASCHED_AGENT_{name.upper()}": text for name, text in settings.items()}
    environment |= {"METASCHED_AGENT_SPOOL": str(tmp_path / "spool.db"), "METASCHED_AGENT_NODE": "n0"}
    return subprocess.Popen([sys.executable, "-m", "monitors.agent"], env=os.environ | environment, text=True)


@pytest.mark.system
def test_an_agent_loses_nothing_while_the_daemon_is_away(tmp_path: Path) -> None:
    """The daemon starts after the agent, is asked again, and gets every sample from the first on; SIGTERM ends all."""
    port = free_port()
    agent = start_agent(tmp_path, daemon=f"http://127.0.0.1:{port}", token="right", interval="0.2", probe_budget="0")
    try:
        time.sleep(3.0)
        with Daemon(port) as daemon:
            deadline = time.monotonic() + 120
            while len(daemon.taken) < 15 and time.monotonic() < deadline:
                time.sleep(0.1)
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(timeout=20) == 0
            daemon.shutdown()
            moments = [sample[1] for sample in daemon.taken]
    finally:
        agent.kill()
    assert len(moments) >= 15
    assert moments == sorted(set(moments))
    assert max(later - sooner for sooner, later in pairwise(moments)) < 2.0  # no hole where it was away
