"""A verifier that the site has stays in force: ours speaks to it as Grid Engine does, and asks about its result."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.deploy.job_verifier import JOB, Verifier
from tests.system.bad_daemons import FAULTS, Bad, changed

#: Notes every line that it is told, and says for each job what the blank stands for.
SITE = """#!/bin/bash
while IFS= read -r line; do
  printf '%s\\n' "$line" >>"$(dirname "$0")/heard"
  case $line in
    START) echo STARTED ;;
    BEGIN) {} ;;
    QUIT) exit 0 ;;
  esac
done
"""
ACCEPTS = "echo RESULT STATE ACCEPT"
REJECTS = "echo RESULT STATE REJECT no such project"
CORRECTS = "printf 'PARAM %s\\n' 'l_hard h_rt=90' 'P physics'; echo ENV ADD SITE here; echo RESULT STATE CORRECT"
#: What metasched makes of a job that nobody else has changed.
PLACED = {
    "q_hard": "new", "l_hard": "h_rt=500,hostname=b1|b2", "pe_min": "2", "pe_max": "2",
    "ac": "owner=me,metasched=app=cg,n=1400,p=2,placement=0f",
    "ENV METASCHED": "metasched:app=cg,n=1400,p=2,placement=0f",
}  # fmt: skip


def judged(folder: Path, does: str, job: dict[str, str] = JOB, fault: str = "") -> tuple[str, dict[str, str]]:
    """The state of a job and what was changed of it, behind a site's verifier that does this at its BEGIN."""
    with (
        closing(Bad(FAULTS[fault] if fault else changed())) as daemon,
        Verifier(folder, f"address = {daemon.address}\ndeadline = 0.5\nnodes = b[1-4]\n", SITE.format(does)) as jsv,
    ):
        return jsv.judge(job)


def test_a_job_that_the_site_takes_is_placed(tmp_path: Path) -> None:
    assert judged(tmp_path, ACCEPTS) == ("CORRECT", PLACED)
    heard = (tmp_path / "heard").read_text().splitlines()
    assert heard == ["START", *(f"PARAM {name} {value}" for name, value in JOB.items()), "BEGIN"]


def test_a_job_that_the_site_corrects_is_placed_as_it_is_then(tmp_path: Path) -> None:
    site = {"P": "physics", "ENV SITE": "here"}
    assert judged(tmp_path, CORRECTS) == ("CORRECT", PLACED | site | {"l_hard": "h_rt=90,hostname=b1|b2"})
    changes = judged(tmp_path, CORRECTS, {name: value for name, value in JOB.items() if name != "ac"})
    assert changes == ("CORRECT", site | {"l_hard": "h_rt=90"})
    removed = "echo PARAM l_hard; echo PARAM ac; echo RESULT STATE CORRECT"
    assert judged(tmp_path, removed) == ("CORRECT", {"l_hard": "", "ac": ""})


def test_what_the_site_says_of_a_job_that_it_accepts_as_it_was_does_not_count(tmp_path: Path) -> None:
    assert judged(tmp_path, CORRECTS.replace("STATE CORRECT", "STATE ACCEPT")) == ("CORRECT", PLACED)


@pytest.mark.parametrize("state", ["REJECT", "REJECT_WAIT"])
def test_a_job_that_the_site_rejects_is_rejected_with_its_words(state: str, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        site = SITE.format(REJECTS.replace("REJECT", state))
        with Verifier(tmp_path, f"address = {daemon.address}\ndeadline = 2\n", site) as verifier:
            assert verifier.judge() == (state, {})
            assert verifier.said == "no such project"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_daemon_leaves_what_the_site_made_of_the_job(fault: str, tmp_path: Path) -> None:
    found = judged(tmp_path, CORRECTS, fault=fault)
    assert found == ("CORRECT", {"l_hard": "h_rt=90", "P": "physics", "ENV SITE": "here"})


def test_a_site_that_asks_for_the_environment_gets_it(tmp_path: Path) -> None:
    site = SITE.format(ACCEPTS).replace("START) echo", "START) echo SEND ENV; echo")
    with Verifier(tmp_path, "address = 127.0.0.1:1\n", site) as verifier:
        verifier.say("START")
        assert [verifier.hear(), verifier.hear()] == ["SEND ENV", "STARTED"]
        verifier.say("ENV ADD HOME /home/me")
        verifier.say("BEGIN")
        assert verifier.hear() == "RESULT STATE ACCEPT"
    assert "ENV ADD HOME /home/me" in (tmp_path / "heard").read_text()


def test_after_a_site_that_took_long_the_daemon_is_not_asked(tmp_path: Path) -> None:
    assert judged(tmp_path, f"sleep 5.2; {ACCEPTS}") == ("ACCEPT", {})


@pytest.mark.parametrize(
    "does",
    ["exit 1", "kill -9 $$", "head -c 9000000 /dev/zero", "while :; do echo PARAM l_hard x; done"],
    ids=["ends", "is killed", "one line without end", "lines without end"],
)
def test_where_the_sites_verifier_ends_or_floods_ours_ends_for_grid_engine_to_start_them_anew(
    does: str, tmp_path: Path
) -> None:
    with Verifier(tmp_path, "address = 127.0.0.1:1\n", SITE.format(does)) as verifier:
        verifier.say("START")
        assert verifier.hear() == "STARTED"
        verifier.say("BEGIN")
        assert verifier.process.wait(20) == 0


def test_a_site_that_neither_reads_nor_answers_ends_with_ours(tmp_path: Path) -> None:
    site = '#!/bin/sh\necho $$ >"$(dirname "$0")/pid"\nexec sleep 600\n'
    with Verifier(tmp_path, "address = 127.0.0.1:1\n", site):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.02)
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    gone(pid)


def gone(pid: int) -> None:
    """Wait until a process has ended; a test that waits in vain times out."""
    while Path(f"/proc/{pid}").exists() and ") Z" not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.05)


def test_the_site_judges_alone_where_there_is_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    with Verifier(tmp_path, "", SITE.format(REJECTS)) as verifier:
        assert verifier.judge() == ("REJECT", {})
        assert verifier.close() == 0


def test_one_job_after_another_is_judged_and_both_leave_when_they_are_told_to(tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\nnodes = b[1-4]\n"
        with Verifier(tmp_path, conf, SITE.format(ACCEPTS)) as verifier:
            found = [verifier.judge(job) for job in (JOB, JOB | {"ac": "x=y"}, JOB)]
            assert found == [("CORRECT", PLACED), ("ACCEPT", {}), ("CORRECT", PLACED)]
            assert verifier.close() == 0
    assert (tmp_path / "heard").read_text().endswith("QUIT\n")


def test_where_ours_is_killed_it_ends_for_grid_engine_to_start_both_anew(tmp_path: Path) -> None:
    with Verifier(tmp_path, "address = 127.0.0.1:1\n", SITE.format(REJECTS)) as verifier:
        assert verifier.judge() == ("REJECT", {})
        children = Path(f"/proc/{verifier.process.pid}/task/{verifier.process.pid}/children")
        os.kill(int(children.read_text()), signal.SIGKILL)
        assert verifier.process.wait(20) == 128 + signal.SIGKILL
