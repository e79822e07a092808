"""Grid Engine's epilog tells of a job from what its shepherd keeps, and never fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DEPLOYED = Path(__file__).parents[2] / "deploy"
CONFIG = "job_owner=root\nsubmission_time=1795341724\nargument=a=b\nno line\n"
MARK = "metasched:app=cg,n=5,p=3,placement=0f"
ENVIRONMENT = {
    "JOB_ID": "7", "SGE_TASK_ID": "undefined", "QUEUE": "new", "HOSTNAME": "n3", "NSLOTS": "3", "JOB_NAME": "cg",
    "JOB_SCRIPT": "/spool/7", "METASCHED": MARK,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (*(DEPLOYED / "gridengine").iterdir(), *(DEPLOYED / "hooks").glob("*.py")):
        if path.is_file():
            shutil.copy(path, tmp_path)
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks.conf").write_text(f"address = 127.0.0.1:1\nstate = {tmp_path}/hooks\ncluster = c\n")
    spool = tmp_path / "7.1"
    spool.mkdir()
    for name, text, at in (("job_pid", "362", 100.25), ("usage", "exit_status=0\nsignal=0\n", 110.5)):
        (spool / name).write_text(text)
        os.utime(spool / name, (at, at))
    (spool / "config").write_text(CONFIG)
    return tmp_path


def answer(folder: Path, *shell: str, **environment: str) -> list[dict[str, Any]]:
    """The jobs that are kept after an epilog, run by a shell where one is named."""
    given = ENVIRONMENT | {"SGE_JOB_SPOOL_DIR": str(folder / "7.1"), "PATH": os.environ["PATH"]} | environment
    words = [*shell, str(folder / "metasched-epilog")]
    done = subprocess.run(words, env=given, check=False, capture_output=True, timeout=60)
    assert done.returncode == 0
    return [json.loads(path.read_text()) for path in (folder / "hooks").glob("ended.*.json")]


def test_a_job_is_told_with_the_moments_at_which_its_files_were_written(folder: Path) -> None:
    assert answer(folder) == [
        {
            "scheduler": "c", "job": "7", "comment": MARK, "partition": "new", "nodes": "n3",
            "processors": 3, "start": 100.25, "end": 110.5, "exit_status": 0, "user": "0", "name": "cg",
            "numbers": "", "submitted": 1795341724.0,
        }
    ]  # fmt: skip


def test_the_hosts_of_a_parallel_job_are_those_of_its_host_file(folder: Path) -> None:
    given = folder / "7.1" / "pe_hostfile"
    given.write_text("n3 2 new@n3 UNDEFINED\nn4 1 new@n4 UNDEFINED\nn3 1 old@n3 UNDEFINED\n")
    (job,) = answer(folder, PE_HOSTFILE=str(given))
    assert (job["nodes"], job["processors"]) == ("n3,n4", 4)


@pytest.mark.parametrize(
    ("usage", "status"), [("exit_status=3\nsignal=0\n", 3), ("exit_status=137\nsignal=9\n", 137), ("", 0)]
)
def test_how_a_job_ended_is_told(usage: str, status: int, folder: Path) -> None:
    (folder / "7.1" / "usage").write_text(usage)
    (job,) = answer(folder)
    assert job["exit_status"] == status


@pytest.mark.parametrize(
    ("more", "number", "kind"),
    [({"SGE_TASK_ID": "2"}, "7.2", "array"), ({"JOB_SCRIPT": "QRSH"}, "7", "interactive"), ({}, "7", None)],
)
def test_what_kind_of_job_it_was_is_told(more: dict[str, str], number: str, kind: str | None, folder: Path) -> None:
    (job,) = answer(folder, **more)
    assert (job["job"], job.get("kind")) == (number, kind)


@pytest.mark.parametrize(
    "gone", ["7.1/job_pid", "7.1/usage", "hooks", "metasched_hooks.py", "metasched_numbers.py", "metasched.off"]
)
def test_an_epilog_that_has_nothing_to_tell_or_cannot_does_not_fail(gone: str, folder: Path) -> None:
    path = folder / gone
    if path.is_dir():
        path.rmdir()
    elif path.exists():
        path.unlink()
    else:
        path.touch()
    assert answer(folder) == []


#: Programs, modules and functions that a user would like to be run in place of those that the epilog means.
PROGRAMS, MODULES = (
    ("python3", "env", "readlink", "dirname"),
    ("sitecustomize", "json", "pathlib", "shlex", "metasched_hooks"),
)
BUILTINS = ("test", "[", "command", "case", "shift")


@pytest.mark.parametrize("program", ["sh", "bash"])
def test_nothing_that_a_job_exports_is_run_or_read_by_its_epilog(program: str, folder: Path) -> None:
    own, done, shell = folder / "own", folder / "done", folder / "sh"
    shell.symlink_to(shutil.which(program) or program)  # bash is what is called sh on many hosts
    own.mkdir()
    for name in PROGRAMS:
        (own / name).write_text(f"#!/bin/sh\ntouch {done}\n")
        (own / name).chmod(0o755)
    for name in MODULES:
        (own / f"{name}.py").write_text(f"open({str(done)!r}, 'w')\n")
    functions = {f"BASH_FUNC_{name}%%": f"() {{ builtin echo >{done}; }}" for name in (*PROGRAMS, *BUILTINS)}
    given = {
        "PATH": f"{own}:{os.environ['PATH']}", "PYTHONPATH": str(own), "PYTHONSTARTUP": str(own / "json.py"),
        "PYTHONHOME": "/nowhere", "PE_HOSTFILE": "/dev/zero", "ENV": str(own / "env"), "BASH_ENV": str(own / "env"),
    }  # fmt: skip
    (job,) = answer(folder, str(shell), **given, **functions)
    assert (job["nodes"], job["processors"]) == ("n3", 3)
    assert not done.exists()


@pytest.mark.parametrize("between", ["\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_no_argument_of_a_job_makes_it_the_job_of_another_user(between: str, folder: Path) -> None:
    (folder / "7.1" / "config").write_bytes(f"{CONFIG}job_arg1=x{between}job_owner=daemon{between}\n".encode())
    (job,) = answer(folder)
    assert job["user"] == "0"


def test_the_numbers_in_arguments_and_script_are_told(folder: Path) -> None:
    words = ["case_7.dat", "-n", "400", "a b", "", "12"]
    given = "".join(f"job_arg{place}={word}\n" for place, word in enumerate(words, 1))
    (folder / "7.1" / "config").write_text(f"{CONFIG}njob_args={len(words)}\n{given}script_file=/dev/zero\n")
    for name in ("active_jobs", "job_scripts"):
        (folder / name).mkdir()
    (folder / "7.1").rename(folder / "active_jobs" / "7.1")
    (folder / "job_scripts" / "7").write_bytes(b"#!/bin/sh\n\xff N=5\nmpirun -np 8 ./solve\n")
    (job,) = answer(folder, SGE_JOB_SPOOL_DIR=f"{folder}/active_jobs/7.1")
    assert job["numbers"] == "$1=7 -n=400 $6=12 script:N==5 script:-np=8"


@pytest.mark.parametrize("count", ["", "9" * 400, "-3", "\u0661", "100000"])
def test_no_count_of_arguments_keeps_a_job_from_being_told(count: str, folder: Path) -> None:
    (folder / "7.1" / "config").write_text(f"{CONFIG}njob_args={count}\njob_arg1=-n400\n")
    (job,) = answer(folder)
    assert job["numbers"] == ("-n=400" if count == "100000" else "")


def test_the_epilog_of_the_site_has_the_variables_of_the_job(folder: Path) -> None:
    site, path = folder / "site", f"/home/ann/bin:{os.environ['PATH']}"
    site.write_text(f'#!/bin/sh\necho "$PATH $1" >{folder}/seen\nexit 3\n')
    site.chmod(0o755)
    given = ENVIRONMENT | {"SGE_JOB_SPOOL_DIR": str(folder / "7.1"), "PATH": path}
    words = [str(folder / "metasched-epilog"), "--beside", str(site), "word"]
    assert subprocess.run(words, env=given, check=False, timeout=60).returncode == 3
    assert (folder / "seen").read_text() == f"{path} word\n"
    assert len([*(folder / "hooks").glob("ended.*.json")]) == 1
