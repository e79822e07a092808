"""Jobs by ssh: words for a shell are quoted, destinations are checked, and what a site says is checked too."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from metasched.schedulers.portable import Portable, portable
from metasched.sites import ssh
from metasched.sites.resending import UnclearError
from metasched.sites.ssh_operations import SshOperations, grid_engine_state, slurm_state

#: Stand in for ssh, which gives the last word to a shell, as sshd does, and for scp.
SSH, SCP = 'for word; do :; done\nexec /bin/sh -c "$word"\n', "exit 0\n"


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)


@pytest.fixture(autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    put(folder, "ssh", SSH)
    put(folder, "scp", SCP)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def job(tmp_path: Path) -> Portable:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    return portable(["-n", "4", "-t", "90", "--comment=metasched:app=cg,n=900", str(script)])


def submitted(job: Portable, *words: str) -> str:
    return ssh.submit("grid@east", job, words)


def test_words_reach_the_command_as_they_are_and_the_script_its_input(job: Portable, tmp_path: Path) -> None:
    odd = ["a b", "$(touch x)", "';", "*", "-o"]
    program = "import sys; print(sys.argv[1:], sys.stdin.read(), file=open(sys.argv[1], 'w')); print('17;cluster')"
    assert submitted(job, sys.executable, "-c", program, str(tmp_path / "said"), *odd) == "17"
    said = (tmp_path / "said").read_text()
    assert str(odd)[1:-1] in said
    assert "echo hello" in said


def test_the_number_is_what_is_printed_last_whatever_a_login_shell_prints_before(job: Portable) -> None:
    assert submitted(job, "printf", "welcome\\n2026\\n4711;east\\nbye\\n") == "4711"


@pytest.mark.parametrize("said", ["", "no", "12 34; rm", "-5", "9" * 30])
def test_what_is_no_number_is_refused(said: str, job: Portable) -> None:
    with pytest.raises(RuntimeError, match="reports no job number"):
        submitted(job, "echo", said)


@pytest.mark.parametrize(
    "command",
    [
        "echo 17; exit 255", "true", "exit 137",
        # Of schedulers that have taken a request and did not answer it in time.
        "echo sbatch: error: Batch job submission failed: Socket timed out on send/recv operation >&2; exit 1",
        "echo sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received >&2; exit 1",
        "echo Unable to run job: failed receiving gdi request response, message receive timeout >&2; exit 1",
    ],
)  # fmt: skip
def test_a_job_whose_answer_is_lost_may_have_been_accepted(command: str, job: Portable) -> None:
    with pytest.raises(UnclearError):
        submitted(job, "sh", "-c", command)


def test_a_job_whose_connection_was_killed_may_have_been_accepted(job: Portable, programs: Path) -> None:
    put(programs, "ssh", 'for word; do :; done\n[ "$word" = true ] || kill -9 $$\n')
    with pytest.raises(UnclearError, match="status -9"):
        submitted(job, "sbatch")


@pytest.mark.parametrize("status", [1, 3, 127])
def test_a_job_that_is_refused_was_not_accepted(status: int, job: Portable) -> None:
    with pytest.raises(RuntimeError, match=f"status {status}") as refused:
        submitted(job, "sh", "-c", f"exit {status}")
    assert not isinstance(refused.value, UnclearError)


def test_a_site_that_is_not_reached_has_accepted_nothing(job: Portable, programs: Path) -> None:
    put(programs, "ssh", "exit 255\n")
    with pytest.raises(RuntimeError, match="status 255") as failed:
        submitted(job, "true")
    assert not isinstance(failed.value, UnclearError)


def test_a_command_that_fails_is_said_in_one_line(job: Portable) -> None:
    with pytest.raises(RuntimeError, match="failed with status 3: no such queue"):
        submitted(job, "sh", "-c", "echo no such queue >&2; exit 3")


@pytest.mark.parametrize("destination", ["-oProxyCommand=x", "", "a b", "a;b", "x" * 300])
def test_what_is_no_destination_is_refused(destination: str, job: Portable) -> None:
    with pytest.raises(RuntimeError, match="not a valid ssh destination"):
        ssh.submit(destination, job, ["true"])


@pytest.mark.parametrize(
    ("options", "scheduler", "partition", "held", "expected"),
    [
        (["-n", "4", "-t", "90"], "slurm", "new", False, "sbatch --parsable -J true -n 4 -o true.out -t 90 -p new"),
        (["-t", "0:01"], "slurm", "", True, "sbatch --parsable -J true -n 1 -o true.out -t 1 -H"),
        (["-n", "1", "-p", "a,b"], "slurm", "", False, "sbatch --parsable -J true -n 1 -o true.out -p a,b"),
        (["-n", "4", "-t", "90"], "grid_engine", "new", False,
         "qsub -terse -cwd -j y -N true -o true.out -pe '*' 4 -l h_rt=5400 -q new"),
        (["-n", "2"], "grid_engine", "", True, "qsub -terse -cwd -j y -N true -o true.out -pe '*' 2 -h"),
        (["-n", "1", "-p", "a"], "grid_engine", "", False, "qsub -terse -cwd -j y -N true -o true.out -q a"),
    ],
)  # fmt: skip
def test_the_words_name_what_was_asked_for_and_round_limits_up(
    options: list[str], scheduler: str, partition: str, held: bool, expected: str
) -> None:
    plain = portable([*options, "/bin/true"])
    assert shlex.join(ssh.submit_words(plain, scheduler, partition, held=held)) == expected
    marked = portable([*options, "--comment=metasched:app=cg,n=9", "/bin/true"])
    mark = {"slurm": " --comment metasched:app=cg,n=9", "grid_engine": " -ac metasched=app=cg,n=9"}[scheduler]
    assert shlex.join(ssh.submit_words(marked, scheduler, partition, held=held)) == expected + mark


def test_what_is_brought_is_measured(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(bytes(1000))
    (tmp_path / "data" / "b").write_bytes(bytes(500))
    (tmp_path / "c").write_bytes(bytes(500))
    assert ssh.size_of([tmp_path / "data", tmp_path / "c"]) == 2000 / 1e9
    size, seconds = ssh.bring("grid@east", [tmp_path / "c"])
    assert size == 500 / 1e9
    assert seconds > 0.0


def test_data_goes_into_its_folder_whether_that_is_there_or_not(tmp_path: Path, programs: Path) -> None:
    put(programs, "scp", f'for word; do :; done\necho "$word" >> {tmp_path}/copied\n')
    put(programs, "ssh", f'for word; do :; done\necho "$word" >> {tmp_path}/copied\n')
    for folder in ("", "data/in", "~/data"):
        ssh.bring("grid@east", [tmp_path], folder)
    assert (tmp_path / "copied").read_text().splitlines() == [
        "grid@east:", "mkdir -p -- data/in", "grid@east:data/in/", "mkdir -p -- data", "grid@east:data/",
    ]  # fmt: skip


def test_data_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=f"{tmp_path}/gone cannot be read: no such file"):
        ssh.bring("grid@east", [tmp_path / "gone"])


def test_connections_that_have_no_place_are_refused(
    job: Portable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(ssh.tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match=f"{tmp_path}/file/metasched-ssh-.* cannot be made: not a directory"):
        submitted(job, "echo", "17")


def test_connections_lie_in_a_folder_of_our_own_alone(
    job: Portable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"metasched-ssh-{os.geteuid()}"
    assert submitted(job, "echo", "17") == "17"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(RuntimeError, match="expected a folder of our own with mode 700"):
        submitted(job, "echo", "17")
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match="expected a folder of our own"):
        submitted(job, "echo", "17")
    another = os.geteuid() + 1  # one that somebody else made, under the name of ours
    (tmp_path / f"metasched-ssh-{another}").mkdir(mode=0o700)
    monkeypatch.setattr(ssh.os, "geteuid", lambda: another)
    with pytest.raises(RuntimeError, match="expected a folder of our own"):
        submitted(job, "echo", "17")


SITES = {
    "east": {"ssh": "me@east", "scheduler": "slurm"},
    "west": {"ssh": "west", "scheduler": "grid_engine"},
    "far": {},
}


def test_works_at_a_site_are_commands_of_its_scheduler(
    job: Portable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []
    printed = {
        "squeue": "8|PENDING|JobHeldAdmin|job.sh\n",
        "qstat": "<q><job_list><JB_job_number>8</JB_job_number><JB_name>job.sh</JB_name></job_list></q>",
    }

    def command(destination: str, words: list[str]) -> str:
        ran.append((destination, shlex.join(words)))
        return printed.get(words[0], "")

    monkeypatch.setattr(ssh, "command", command)
    monkeypatch.setattr(ssh, "bring", lambda *what: ran.append(("brought", str(what[2]))) or (2.0, 30.0))
    monkeypatch.setattr(ssh, "submit", lambda to, _, words: ran.append((to, shlex.join(words))) or "17")
    made = SshOperations(SITES, job, (tmp_path,), "data", held_by=["west"])
    for site in ("east", "west"):
        for work in (made.hold, made.release, made.cancel):
            work(site, "8")
    assert [made.state_of(site, "8") for site in ("east", "west")] == ["held", "started"]
    assert ran == [
        ("me@east", "scontrol hold 8"), ("me@east", "scontrol release 8"), ("me@east", "scancel 8"),
        ("west", "qhold 8"), ("west", "qrls 8"), ("west", "qdel 8"),
        ("me@east", "squeue --noheader --states=all --me '--format=%F|%T|%r|%j'"), ("west", "qstat -xml"),
    ]  # fmt: skip
    ran.clear()
    assert made.submit("east", "new") == ("17", 2.0, 30.0)
    assert made.submit_held("west", "") == ("17", 0.0, 0.0)
    assert [(to, words.split()[-3] if to == "west" else words.count(" -p new ")) for to, words in ran] == [
        ("brought", 0), ("me@east", 1), ("west", "-h"),
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="'8;x' is not a job number"):
        made.hold("east", "8;x")
    for site, why in (("far", "its table has no ssh"), ("none", "site none is not configured any more")):
        with pytest.raises(RuntimeError, match=why):
            made.cancel(site, "8")


@pytest.mark.parametrize(
    ("listed", "state"),
    [
        ("8|PENDING|Priority|cg", "waiting"), ("8|PENDING|JobHeldUser|cg", "held"),
        ("8|PENDING|JobHeldAdmin|cg", "held"), ("8|CANCELLED|None|cg", "cancelled"),
        ("8|COMPLETED|None|cg", "started"), ("80|PENDING|Priority|cg", "unknown"),
        ("", "unknown"), ("7|RUNNING|None|cg\n 8|PENDING|Resources|cg ", "waiting"),
        # An array is what the furthest of its tasks is.
        ("8|PENDING|JobHeldUser|cg\n8|RUNNING|None|cg", "started"),
        ("8|CANCELLED|None|cg\n8|COMPLETED|None|cg", "started"),
        ("8|PENDING|JobHeldUser|cg\n8|PENDING|Priority|cg", "waiting"),
        ("8|CANCELLED|x|cg\n8|PENDING|JobHeldUser|cg", "held"),
        # Another job of the same number is nothing to change.
        ("8|PENDING|Priority|a|cg", "started"), ("8|CANCELLED|None|lu", "started"), ("8|PENDING", "started"),
    ],
)  # fmt: skip
def test_the_state_of_a_job_by_squeue(listed: str, state: str) -> None:
    assert slurm_state(listed, "8", "cg") == state


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        (["qw"], "waiting"), (["hqw"], "held"), (["r"], "started"), (["hr"], "started"), (["Eqw"], "waiting"),
        (["hqw", "r"], "started"), (["hqw", "qw"], "waiting"),
    ],
)  # fmt: skip
def test_the_state_of_a_job_by_qstat(letters: list[str], state: str) -> None:
    def listed(number: str) -> str:
        row = f"<job_list><JB_job_number>{number}</JB_job_number><JB_name>cg</JB_name><state>{{}}</state></job_list>"
        return f"<q>{''.join(row.format(each) for each in letters)}</q>"

    assert grid_engine_state(listed("8"), "8", "cg") == state
    assert grid_engine_state(listed("8"), "8", "lu") == "started"
    assert grid_engine_state(listed("80"), "8", "cg") == "unknown"
