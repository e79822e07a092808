"""Real NorduGrid ARC: the broker orders two computing elements, one of them before a real Slurm, and harms no job."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.service.daemons import learned_database, teach
from tests.system import real_arc, real_slurm
from tests.system.bad_daemons import FAULTS, Bad, http
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

WEST = """
[[cluster]]
name = "west"
nodes = [{ names = "w[1-4]", processors = 4, available_bandwidth = 100.0 }]
"""
EAST = """
mode = "act"
[periods]
partitions = 1.0
confirm = 0.5
[[slurm]]
name = "proof"
configuration = "{slurm}/slurm.conf"
[[site]]
name = "east"
url = "{east}"
bandwidth = 8000.0
[[site]]
name = "west"
url = "{west}"
bandwidth = 800.0
"""
#: A-REX writes a job's environment into the script, by which the hook of the site recognises it.
RULES = 'return { { application = "cg", script = "METASCHED=app=cg,n=(%d+)" } }\n'
JOB = """&(executable="/bin/sh")(arguments="-c" "cat data; sleep 0.5")(inputfiles=("data" "{data}"))(stdout="out")
(jobname="cg-500")(count="2")(walltime="5 minutes")(environment=("METASCHED" "app=cg,n=500{more}"))"""


@dataclass
class Sites:
    arc: real_arc.Grid
    slurm: Slurm
    east: Daemon
    west: Daemon

    def load(self, east: float, west: float) -> None:
        """What is available of each processor of the queue new, and of each at west; a third of it in the queue old."""
        shares = {node: east if node in NODES[4:] else east / 3.0 for node in NODES}
        for daemon, nodes in ((self.east, shares), (self.west, {f"w{number}": west for number in range(1, 5)})):
            for node, share in nodes.items():
                daemon.ask("POST", "/v1/loads", {"node": node, "samples": [[time.time() + 30.0, share, 100.0]]})
        time.sleep(1.5)  # until placements see it

    def submit(self, more: str = "") -> tuple[str, str]:
        """Submit a job through the broker: the address of the job, and what was logged."""
        self.arc.asks(f"address = {self.east.socket}\ndeadline = 5")
        return self.arc.arcsub(JOB.format(data=self.arc.folder / "data", more=more))


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    if why := real_arc.why_not() or real_slurm.why_not():
        pytest.skip(why)
    # The user of the jobs must get at what they run.
    with tempfile.TemporaryDirectory() as name:
        above = Path(name)
        above.chmod(0o755)
        with running(above) as sites:
            yield sites


@contextmanager
def running(above: Path) -> Iterator[Sites]:
    """Both sites in a folder, for the duration of a block."""
    west_folder, east_folder = above / "west", above / "east"
    for folder in (west_folder, east_folder):
        folder.mkdir()
    (west_folder / "metasched.db").write_bytes(learned_database())
    (west_folder / "clusters.toml").write_text(WEST)
    with Store.open(east_folder / "metasched.db") as store:
        teach(store, "proof")
    west = Daemon(west_folder, 'clusters = "clusters.toml"')
    with real_slurm.running(above / "slurm") as slurm, real_arc.running(above / "grid", slurm) as arc:
        east = Daemon(
            east_folder, EAST.format(slurm=slurm.folder, east=east_folder / "d.sock", west=west_folder / "d.sock")
        )
        try:
            for daemon in (west, east):
                daemon.start()
            slurm.hooks({"socket": east.socket}, RULES)
            (arc.folder / "data").write_text("brought\n")
            yield Sites(arc, slurm, east, west)
        finally:
            for daemon in (west, east):
                daemon.stop()


def test_a_job_goes_where_it_should_be_done_first_and_is_learned_there(sites: Sites) -> None:
    sites.load(east=0.9, west=0.2)
    job, said = sites.submit()
    assert job.startswith("https://east.example"), said
    assert "east: runs" in said
    sites.arc.wait(lambda: "Finished" in sites.arc.run("arcstat", job).stdout, 120.0)
    sites.arc.run("arcget", "--dir=got", job)
    (out,) = (sites.arc.folder / "home" / "got").glob("*/out")
    assert out.read_text() == "brought\n"
    sites.arc.wait(lambda: learned(sites))
    (record,) = learned(sites)
    assert (record.run.problem_size, record.run.processors, record.exit_status) == (500, 2, 0)
    assert sites.slurm.job(int(record.run.extra["job"]))["Partition"] == "new"


def learned(sites: Sites) -> list[RecordedRun]:
    with Store.open(sites.east.database) as store:
        return [each for each in store.runs.all() if each.learnable and "job" in each.run.extra]


def test_a_job_goes_to_the_other_site_where_that_is_less_loaded(sites: Sites) -> None:
    sites.load(east=0.05, west=1.0)
    job, said = sites.submit()
    assert job.startswith("https://west.example"), said
    assert "west: runs" in said


def test_the_time_to_bring_data_counts(sites: Sites) -> None:
    sites.load(east=0.5, west=1.0)
    job, said = sites.submit(",data=500")
    assert job.startswith("https://east.example"), said


class Files(BaseHTTPRequestHandler):
    """A file of 3 MB, whoever asks, and all that was asked for."""

    asked: ClassVar[list[str]] = []
    body = b"staged\n" + bytes(3_000_000 - 7)

    def do_HEAD(self) -> None:
        self.asked.append(self.command)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_rex_stages_a_file_from_its_url_and_the_broker_counts_it(sites: Sites) -> None:
    sites.load(east=0.9, west=0.2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sites.arc.asks(f"address = {sites.east.socket}\ndeadline = 5")
        url = f"http://127.0.0.1:{server.server_address[1]}/far/mesh"
        job, said = sites.arc.arcsub(JOB.format(data=url, more="").replace("cat data", "head -n 1 data"))
        assert job.startswith("https://east.example"), said
        assert "0.003 GB at 8000 Mbit/s" in said
        assert Files.asked[0] == "HEAD"
        sites.arc.wait(lambda: "Finished" in sites.arc.run("arcstat", job).stdout, 120.0)
        server.shutdown()
    # The client has sent no data: A-REX fetched it itself.
    assert "GET" in Files.asked
    sites.arc.run("arcget", "--dir=staged", job)
    (out,) = (sites.arc.folder / "home" / "staged").glob("*/out")
    assert out.read_text() == "staged\n"


@pytest.mark.parametrize("fault", ["is down", "hangs", "answers byte by byte", "answers without end", "lies"])
def test_a_faulty_daemon_ends_no_submission(sites: Sites, fault: str) -> None:
    lies = {"format": 1, "sites": [{"site": "%n%s", "partition": "\x1b", "processors": -1, "reason": "%n" * 500}]}
    answer = FAULTS.get(fault, lambda link: link.sendall(http(json.dumps(lies).encode())))
    with closing(Bad(answer)) as daemon:
        where = "127.0.0.1:1" if fault == "is down" else daemon.address
        sites.arc.asks(f"address = http://{where}\ndeadline = 0.5")
        job, said = sites.arc.arcsub(JOB.format(data=sites.arc.folder / "data", more=""))
    assert job, said
    assert "targets stay in the order of ARC: no sound answer within 0.5 s" in said
