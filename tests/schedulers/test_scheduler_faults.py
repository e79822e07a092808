"""Whatever a scheduler's commands or the daemon do, a job is submitted as it was: one suite for every scheduler.

The hooks inside the schedulers have theirs in ``tests/deploy/test_hook_faults.py``. Here the scheduler's commands are
scripts that fail in all ways, and the daemons are those that fail the hooks; only the command that submits is sound,
and notes what it was given.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from metasched.cli import main
from metasched.cli.placements import submit as submit_verb
from metasched.client import submission
from metasched.schedulers.contract import Source
from metasched.service.configuration import Configuration
from metasched.service.sources import sources
from monitors import bounded_commands
from tests.schedulers import flux_answers, htcondor_answers, oar_answers, pbs_answers
from tests.schedulers.test_grid_engine import QSTAT
from tests.schedulers.test_slurm import SINFO, table
from tests.system.bad_daemons import FAULTS, Bad, changed


@dataclass(frozen=True)
class Scheduler:
    """A scheduler as the suite drives it: its table in the configuration, its commands, and what submits a job.

    ``sound`` is what its commands print where they do as they should, and ``prepare`` makes those that print more.
    """

    table: str
    submits: str
    words: tuple[str, ...]
    sound: Mapping[str, str]
    prepare: Callable[[Path], None] = lambda folder: None


#: Where one command both submits and lists, it is sound as far as it submits.
SUBMITS = 'case $1 in submit) exec "$0.submit" "$@";; esac\n'

SCHEDULERS = {
    "slurm": Scheduler(
        "[[slurm]]\nname = 'c'\n",
        "sbatch",
        ("-n", "2", "--comment=metasched:app=cg,n=1400", "job.sh", "-n", "a b;$(c)"),
        {"sinfo": json.dumps(SINFO), "squeue": "", "sacct": "", "scontrol": "", "sacctmgr": ""},
        lambda folder: table(folder / "sinfo", [{"PartitionName": "racka"}, {"PartitionName": "all"}], SINFO),
    ),
    "grid_engine": Scheduler(
        "[[grid_engine]]\nname = 'c'\nroot = '{folder}'\n",
        "qsub",
        ("-ac", "metasched=app=cg,n=1400", "-pe", "mpi", "2", "job.sh", "-q", "a b;$(c)"),
        {"qstat": QSTAT, "qconf": "jsv_url none\n", "qalter": ""},
    ),
    "pbs": Scheduler(
        "[[pbs]]\nname = 'c'\n",
        "qsub",
        ("-v", "METASCHED=app=cg:n=1400", "-l", "select=2:ncpus=1", "job.sh", "-q", "a b;$(c)"),
        {"pbsnodes": pbs_answers.FILES["pbsnodes.sound"], "qstat": pbs_answers.FILES["qstat.jobs"], "qalter": ""},
        lambda folder: several(folder, "qstat", pbs_answers.QSTAT, pbs_answers.FILES),
    ),
    "htcondor": Scheduler(
        "[[htcondor]]\nname = 'c'\n",
        "condor_submit",
        ("request_cpus=2", "-a", '+Metasched = "app=cg,n=1400"', "job.sub"),
        htcondor_answers.PRINTED,
    ),
    "flux": Scheduler(
        "[[flux]]\nname = 'c'\n",
        "flux",
        ("submit", "-n", "2", "--setattr=user.metasched=app=cg,n=1400", "cg", "-q", "a b;$(c)"),
        {"flux": flux_answers.FILES["flux.jobs"]},
        lambda folder: several(folder, "flux", flux_answers.FLUX, flux_answers.FILES),
    ),
    "oar": Scheduler(
        "[[oar]]\nname = 'c'\nproperty = 'cluster'\n",
        "oarsub",
        ("-l", "core=2", "-n", "a b;$(c)", "METASCHED=app=cg,n=1400 ./job.sh"),
        {"oarnodes": oar_answers.FILES["oarnodes.sound"], "oarstat": oar_answers.FILES["oarstat.jobs"]},
        lambda folder: several(folder, "oarstat", oar_answers.OARSTAT, oar_answers.FILES),
    ),
}


def several(folder: Path, command: str, body: str, files: Mapping[str, str]) -> None:
    """A command that prints one of some files, by what it is asked."""
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / command).write_text(f"#!/bin/sh\n{SUBMITS}{body}\n")


#: What a command does instead of what it should, as the body of a script.
FAULTY: dict[str, str] = {
    "fails": "echo down >&2; exit 1",
    "hangs": "sleep 600",
    "leaves a child that hangs": "sleep 600 & exit 0",
    "prints by the byte": "while :; do printf x; sleep 0.01; done",
    "prints nothing": "exit 0",
    "prints garbage": "head -c 65536 /dev/urandom",
    "prints without end": "yes '<job_list state=\"running\">'",
    "prints half": 'head -c 300 "$0.sound"',
    "prints twice": 'cat "$0.sound" "$0.sound"',
    "prints numbers that are none": """sed 's/[0-9][0-9]*/9e999/g; s/null/"x"/g' "$0.sound" """,
    "prints names that are options": """sed 's/racka/--wrap=touch forged/g; s/[.]q@/ --wrap@/g' "$0.sound" """,
    "prints other types": """sed 's/: *[0-9][0-9]*/: {"a": []}/g; s/>[0-9][0-9]*</></g' "$0.sound" """,
    "is killed": "kill -9 $$",
}

#: How long a command is waited for (s): less where it is known to take for ever.
PATIENCE = dict.fromkeys(FAULTY, 5.0) | dict.fromkeys(["hangs", "leaves a child that hangs", "prints by the byte"], 0.1)

EACH = pytest.mark.parametrize("scheduler", SCHEDULERS.values(), ids=SCHEDULERS)


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scheduler, str, str], list[Any]]:
    """Submits a job with commands and a daemon as they are told to be; the exit status, then what was handed over."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(submission, "DEADLINE", 5.0)
    monkeypatch.setattr(bounded_commands, "MOST_OUTPUT", 1 << 20)

    def submit(scheduler: Scheduler, listen: str, faulty: str, patience: float = 0.3) -> list[Any]:
        monkeypatch.setattr(submit_verb, "TIMEOUT", patience)
        install(tmp_path, scheduler, faulty)
        (tmp_path / "metasched.toml").write_text(f"{scheduler.table.format(folder=tmp_path)}[listen]\n{listen}\n")
        with pytest.raises(SystemExit) as left:
            main(["submit", "--config", str(tmp_path / "metasched.toml"), "--", *scheduler.words])
        return [left.value.code or 0, *json.loads((tmp_path / "handed.json").read_text())]

    return submit


def install(folder: Path, scheduler: Scheduler, faulty: str) -> None:
    for name, printed in scheduler.sound.items():
        (folder / f"{name}.sound").write_text(printed)
        (folder / name).write_text(f"#!/bin/sh\n{SUBMITS}{faulty}\n")
        (folder / name).chmod(0o755)
    if faulty == SOUND:
        scheduler.prepare(folder)
    note = f"import json, sys\njson.dump(sys.argv[1:], open({str(folder / 'handed.json')!r}, 'x'))\n"
    sound = folder / (scheduler.submits if scheduler.submits not in scheduler.sound else f"{scheduler.submits}.submit")
    sound.write_text(f"#!{sys.executable} -IS\n{note}")
    sound.chmod(0o755)


SOUND = 'cat "$0.sound"'


@EACH
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_daemon_changes_no_submission(
    scheduler: Scheduler, fault: str, submitted: Callable[..., list[Any]], tmp_path: Path
) -> None:
    with closing(Bad(FAULTS[fault], str(tmp_path / "bad.sock"))):
        assert submitted(scheduler, f'socket = "{tmp_path}/bad.sock"', SOUND) == [0, *scheduler.words]


@EACH
def test_a_daemon_that_is_dead_changes_no_submission(
    scheduler: Scheduler, submitted: Callable[..., list[Any]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert submitted(scheduler, f'socket = "{tmp_path}/nobody.sock"', SOUND) == [0, *scheduler.words]
    assert "metasched: submitted unchanged: " in capfd.readouterr().err


class Sound(BaseHTTPRequestHandler):
    """A daemon that has a model: jobs take 10 s wherever they are."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        places = {f"c/{name}": {"scheduler": "c", "partition": name} for name in ("racka", "all", "old", "new")}
        later = [{"cluster": name, "execution_time": 10.0} for name in places]
        self.answer({"placed": False, "clusters": places, "later": later})

    def answer(self, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@EACH
def test_with_a_sound_daemon_the_same_job_gets_a_partition_and_nothing_else(
    scheduler: Scheduler, submitted: Callable[..., list[Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Sound) as daemon:
        threading.Thread(target=daemon.serve_forever, daemon=True).start()
        status, *handed = submitted(scheduler, f"port = {daemon.server_port}", SOUND, 10.0)
        daemon.shutdown()
    added = [word for word in handed if word not in scheduler.words or word == "-q"]
    assert (status, [word for word in handed if word not in added[:2]]) == (0, [
        word for word in scheduler.words if word not in added[:2]
    ])  # fmt: skip
    assert "completion in 10 s" in capfd.readouterr().err
    assert handed != list(scheduler.words)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_job_that_fits_in_no_partition_is_sent_to_none(
    name: str, submitted: Callable[..., list[Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    scheduler, sound = SCHEDULERS[name], dict(SCHEDULERS[name].sound)
    if name == "grid_engine":  # slots of its own that a queue has beside others of the host are not its size
        sound["qstat"] = sound["qstat"].replace("old@n1", "old@n9")
    words = tuple(re.sub(r"^2$|(?<==)2(?=$|:)", "400", word) for word in scheduler.words)
    large = replace(scheduler, words=words, sound=sound)
    with ThreadingHTTPServer(("127.0.0.1", 0), Sound) as daemon:
        threading.Thread(target=daemon.serve_forever, daemon=True).start()
        assert submitted(large, f"port = {daemon.server_port}", SOUND, 10.0) == [0, *words]
        daemon.shutdown()
    assert "submitted unchanged: no partition that is open to the job has 400 processors" in capfd.readouterr().err


@EACH
@pytest.mark.parametrize("fault", FAULTY)
def test_faulty_commands_change_no_submission(
    scheduler: Scheduler, fault: str, submitted: Callable[..., list[Any]], tmp_path: Path
) -> None:
    with closing(Bad(changed(), str(tmp_path / "good.sock"))):
        assert submitted(scheduler, f'socket = "{tmp_path}/good.sock"', FAULTY[fault], PATIENCE[fault]) == [
            0,
            *scheduler.words,
        ]


@EACH
@pytest.mark.parametrize("fault", FAULTY)
def test_faulty_commands_are_errors_of_one_kind(
    scheduler: Scheduler, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(bounded_commands, "MOST_OUTPUT", 1 << 20)
    install(tmp_path, scheduler, FAULTY[fault])
    settings = tomllib.loads(scheduler.table.format(folder=tmp_path))
    (source,) = sources(Configuration.model_validate(settings), timeout=PATIENCE[fault])
    answers = {question: answered(ask) for question, ask in questions(source).items()}
    assert set(answers) == {"partitions", "running", "queue", "bound", "accounted", "finished", "fates", "release"}
    assert {question: answer for question, answer in answers.items() if not isinstance(answer, str)} == {}


def questions(source: Source) -> dict[str, Callable[[], Any]]:
    return {
        "partitions": source.partitions,
        "running": source.running,
        "queue": source.queue,
        "bound": source.bound,
        "accounted": lambda: source.accounted(0.0),
        "finished": lambda: source.finished(0.0),
        "fates": lambda: source.fates(["3"]),
        "release": lambda: source.release("3", None, None),
    }


def answered(ask: Callable[[], Any]) -> str | Exception:
    """What came of a question: an answer, the one error that is expected, or another."""
    try:
        ask()
    except RuntimeError as error:
        return f"not now: {error}"
    except Exception as error:
        return error
    return "an answer"
