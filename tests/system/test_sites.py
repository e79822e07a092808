"""A grid of real daemons: two sites, one of them by TLS, one that hangs, one whose certificate has expired.

The grid's daemon has no models of its own. What it answers comes from the sites, and it goes on when one is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certificates
import pytest

from metasched.store.database.store import Store
from tests.free_ports import free_port
from tests.service.daemons import CLUSTERS, learned_database
from tests.system import real_sshd
from tests.system.bad_daemons import FAULTS, Bad
from tests.system.real_daemon import ROOT, Daemon

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(certificates.why_not()), reason=certificates.why_not()),
]

SITE = """
[[site]]
name = "{name}"
url = "{url}"
bandwidth = {bandwidth}
{more}
"""


@dataclass
class Grid:
    near: Daemon
    far: Daemon
    grid: Daemon

    def rank(self, **fields: Any) -> Any:
        question = {"application": "cg", "problem_size": 900, "max_processors": 4, "data": 0.0}
        return self.grid.ask("POST", "/v1/sites/rankings", question | fields)

    def verb(self, *words: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
        config = self.grid.folder / "metasched.toml"
        return subprocess.run(
            [sys.executable, "-m", "metasched", *words[:2], "--config", str(config), *words[2:]],
            cwd=ROOT, capture_output=True, text=True, timeout=120,
            env=os.environ | {"COLUMNS": "160", "PATH": path},
        )  # fmt: skip


def site(folder: Path, *, expired: bool = False) -> tuple[Daemon, str]:
    """A daemon with two clusters that listens by TLS, and its URL."""
    folder.mkdir()
    (folder / "metasched.db").write_bytes(learned_database())
    (folder / "clusters.toml").write_text(CLUSTERS)
    certificate, key = certificates.make(folder, expired=expired)
    with Store.open(folder / "metasched.db") as store:
        (folder / "token").write_text(store.tokens.add("grid", "scheduler"))
    port = free_port()
    listen = f'certificate = "{certificate}"\nkey = "{key}"\n'
    return Daemon(folder, 'clusters = "clusters.toml"', port=port, listen=listen), f"https://localhost:{port}"


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    above = tmp_path_factory.mktemp("sites")
    near, near_url = site(above / "near")
    far, far_url = site(above / "far")
    old, old_url = site(above / "old", expired=True)
    hanging = Bad(FAULTS["hangs"])
    (above / "grid").mkdir()

    def by_tls(name: str) -> str:
        reached = {"near": "site", "far": "gone", "old": ""}[name]
        return (
            f'token_file = "../{name}/token"\nca_file = "../{name}/certificate.pem"\ndeadline = 5.0\nssh = "{reached}"'
        )

    tables = [
        SITE.format(name="near", url=near_url, bandwidth=8000.0, more=by_tls("near")),
        SITE.format(name="far", url=far_url, bandwidth=80.0, more=by_tls("far")),
        SITE.format(name="old", url=old_url, bandwidth=80.0, more=by_tls("old")),
        SITE.format(name="hangs", url=f"http://{hanging.address}", bandwidth=80.0, more="deadline = 0.5"),
        SITE.format(name="circle", url="d.sock", bandwidth=80.0, more="grid = true\ndeadline = 2.0"),
    ]
    own = Daemon(above / "grid", "".join(tables) + "[periods]\nsites = 1.0", port=free_port())
    made = Grid(near, far, own)
    for daemon in (near, far, old, made.grid):
        daemon.start()
    yield made
    for daemon in (near, far, old, made.grid):
        daemon.stop()
    hanging.close()


def test_sites_are_ranked_and_the_others_named_with_why(grid: Grid) -> None:
    answer = grid.rank(data=1.0)
    assert [each["site"] for each in answer["sites"]] == ["near", "far"]
    assert [each["transfer"] for each in answer["sites"]] == [pytest.approx(1.0), pytest.approx(100.0)]
    why = {each["site"]: each["why"] for each in answer["left_out"]}
    assert set(why) == {"old", "hangs", "circle"}
    assert "certificate has expired" in why["old"]
    assert "\n" not in why["old"]
    assert "in time" in why["hangs"] or "within" in why["hangs"]
    assert "in a cycle" in why["circle"] or "no site" in why["circle"]


def test_agents_of_two_sites_measure_the_link_between_them_for_the_ranking(grid: Grid, tmp_path: Path) -> None:
    places = {name: f"127.0.0.1:{free_port()}" for name in ("home", "far")}
    with Store.open(grid.grid.database) as store:
        token = store.tokens.add("probing", "site", node="home")
    (tmp_path / "token").write_text(token)
    (tmp_path / "secret").write_text("sixteen bytes of secret")
    time.sleep(1.5)  # until the daemon has read the token
    agents = []
    for name, place in places.items():
        settings = {
            "NODE": f"{name}-n1", "DAEMON": f"http://127.0.0.1:{grid.grid.port}",
            "SITES_TOKEN_FILE": f"{tmp_path}/token", "INTERVAL": "0.5",
            "SPOOL": f"{tmp_path}/{name}.db", "INTERFACE": "lo", "PROBE_BUDGET": "0", "SITE": name,
            "SITES": ",".join(f"{each}={at}" for each, at in places.items()), "SITES_LISTEN": place,
            "SITES_PERIOD": "1", "SITES_SECRET_FILE": f"{tmp_path}/secret",
        }  # fmt: skip
        environment = os.environ | {f"METASCHED_AGENT_{key}": value for key, value in settings.items()}
        agents.append(subprocess.Popen([sys.executable, "-m", "monitors.agent"], cwd=ROOT, env=environment))
    try:
        end = time.monotonic() + 60.0
        while (far := site_of(grid, "far"))["bandwidth_source"] != "probes":
            assert time.monotonic() < end
            time.sleep(0.2)
    finally:
        for agent in agents:
            agent.terminate()
            agent.wait(30)
    assert far["bandwidth"] > 80.0  # as configured, and the loopback interface is faster
    assert 0.0 < far["round_trip"] < 1.0
    (found,) = grid.rank(data=1.0, sites=["far"])["sites"]
    assert 0.0 < found["transfer"] < 100.0
    assert "measured" in found["reason"]
    shown = " ".join(grid.verb("sites", "status").stdout.split())
    assert "probes" in shown
    # What transfers and the configuration say counts for the other tests.
    assert site_of(grid, "near")["bandwidth_source"] != "probes"


def site_of(grid: Grid, name: str) -> Any:
    return next(each for each in grid.grid.ask("GET", "/v1/sites")["sites"] if each["site"] == name)


def test_jobs_sent_one_after_another_go_to_both_sites(grid: Grid) -> None:
    sent = [grid.rank(send=True, processors=[4], sites=["near", "far"]) for _ in range(12)]
    assert {each["sites"][0]["site"] for each in sent} == {"near", "far"}
    report = {"site": sent[0]["sites"][0]["site"], "job": "7", "data": 1.0, "seconds": 16.0}
    noted = grid.grid.ask("PUT", f"/v1/sites/jobs/{sent[0]['id']}", report)
    assert (noted["state"], noted["job"]) == ("submitted", "7")
    assert grid.grid.ask("PUT", f"/v1/sites/jobs/{sent[1]['id']}", {})["state"] == "withdrawn"
    status = {each["site"]: each for each in grid.grid.ask("GET", "/v1/sites")["sites"]}
    assert status[report["site"]]["bandwidth"] == pytest.approx(500.0)


def test_the_command_line_shows_the_ranking_and_the_sites(grid: Grid) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return grid.verb("sites", *words)

    ranked = run("rank", "--application", "cg", "--problem-size", "900", "--data", "2")
    assert ranked.returncode == 0, ranked.stderr
    assert "old is left out: the certificate of https://localhost" in ranked.stderr
    assert "2 GB at" in ranked.stdout
    document = json.loads(run("rank", "--application", "cg", "--problem-size", "900", "--json").stdout)
    assert document["data"] is None
    assert "size of the data is unknown" in document["warnings"][0]
    shown = run("status")
    assert shown.returncode == 0
    assert "certificate has expired" in shown.stdout
    nothing = run("rank", "--application", "cg", "--problem-size", "900", "--site", "hangs")
    assert nothing.returncode == 1
    assert "no site can take the job" in nothing.stderr


@pytest.mark.skipif(bool(real_sshd.why_not()), reason=real_sshd.why_not())
def test_a_job_is_submitted_by_ssh_and_its_outcome_teaches_the_score(grid: Grid, tmp_path: Path) -> None:
    script, data = tmp_path / "job.sh", tmp_path / "data"
    script.write_text("#!/bin/sh\necho 'it is; $(here)'\n")
    script.chmod(0o755)
    data.write_bytes(bytes(300_000))
    sshd = real_sshd.Sshd(tmp_path)
    job = ["-J", "solve", "-n", "4", "--comment=metasched:app=cg,n=900", str(script)]
    try:
        arguments = (
            "--held-by",
            "far",
            "--bring",
            str(data),
            "--folder",
            f"{tmp_path}/new/there",
            "--json",
            "--",
            *job,
        )
        done = grid.verb("sites", "submit", *arguments, path=sshd.path)
        assert done.returncode == 0, done.stderr
        again = grid.verb("sites", "submit", "--site", "near", "--data", "0", "--", *job, path=sshd.path)
        assert again.returncode == 0, again.stderr
        assert "submitted to near as job 4711" in again.stdout
    finally:
        sshd.stop()
    document = json.loads(done.stdout)
    assert (document["submitted"]["site"], document["submitted"]["job"]) == ("near", "4711")
    assert (tmp_path / "new" / "there" / "data").stat().st_size == 300_000
    assert (tmp_path / "script").read_text() == script.read_text()
    words = (tmp_path / "words").read_text().splitlines()
    assert words[0] == "--parsable"
    assert words[-1] == "metasched:app=cg,n=900"
    asked = {"application": "cg", "problem_size": 900, "processors": [4], "job": "4711"}
    placed = grid.near.ask("POST", "/v1/placements", asked)
    nodes, made_at = placed["nodes"], grid.near.ask("GET", f"/v1/placements/{placed['id']}")["made_at"]
    ended = {"job": "4711", "nodes": nodes, "processors": 4, "start": made_at + 10.0}
    comment = f"metasched:app=cg,n=900,placement={placed['id']}"
    ended |= {"end": made_at + 60.0, "comment": comment, "scheduler": "east"}
    grid.near.ask("POST", "/v1/jobs", ended)
    end = time.monotonic() + 60.0
    while True:
        jobs = [each for each in grid.grid.ask("GET", "/v1/sites")["jobs"] if each["job"] == "4711"]
        if jobs and all(each["state"] == "ended" for each in jobs):
            break
        assert time.monotonic() < end, jobs
        time.sleep(0.2)
    assert [each["took"] for each in jobs] == [pytest.approx(60.0), pytest.approx(60.0)]
    trust = next(each for each in grid.grid.ask("GET", "/v1/sites")["sites"] if each["site"] == "near")["trust"]
    assert trust["outcomes"] == 2
    # Six times as long as predicted, twice; a time far beyond what can have passed would not be believed.
    assert trust["multiplier"] > 1.3


def test_what_is_known_of_jobs_and_sites_survives_the_grid_daemon_being_killed(grid: Grid) -> None:
    sent = grid.rank(send=True, processors=[4], sites=["near", "far"])
    report = {"site": "far", "job": "99", "data": 1.0, "seconds": 80.0}
    grid.grid.ask("PUT", f"/v1/sites/jobs/{sent['id']}", report)
    before = grid.grid.ask("GET", "/v1/sites")
    grid.grid.kill()
    grid.grid.start()
    after = grid.grid.ask("GET", "/v1/sites")
    assert sent["id"] in [each["id"] for each in after["jobs"]]
    fixed = ("id", "site", "cluster", "job", "predicted", "completion")
    assert [[each[name] for name in fixed] for each in after["jobs"]] == [
        [each[name] for name in fixed] for each in before["jobs"]
    ]
    known = {each["site"]: (each["trust"], each["bandwidth"]) for each in after["sites"]}
    assert known == {each["site"]: (each["trust"], each["bandwidth"]) for each in before["sites"]}
    assert known["far"][1] == pytest.approx(100.0)
    withdrawn = grid.rank(send=True, sites=["far"])["id"]
    assert grid.grid.ask("PUT", f"/v1/sites/jobs/{withdrawn}", {})["state"] == "withdrawn"


def test_a_site_that_is_killed_drops_out_and_comes_back(grid: Grid) -> None:
    grid.near.kill()
    answer = grid.rank(sites=["near", "far"])
    assert [each["site"] for each in answer["sites"]] == ["far"]
    assert "does not answer" in answer["left_out"][0]["why"]
    grid.near.start()
    assert {each["site"] for each in grid.rank(sites=["near", "far"])["sites"]} == {"near", "far"}
