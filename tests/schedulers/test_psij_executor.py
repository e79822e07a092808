"""What PSI/J hands to Grid Engine, and what it makes of the answers."""

from __future__ import annotations

import io
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import psij
import pytest
from psij.executors.batch.batch_scheduler_executor import InvalidJobStateError

from metasched.schedulers.grid_engine.psij_executor import executor
from metasched.schedulers.grid_engine.source import GridEngineSource
from metasched.schedulers.portable import portable
from metasched.schedulers.psij import handed_over
from metasched.schedulers.slurm.source import SlurmSource

BEGIN = "#!/bin/bash\n#$ -S /bin/bash\n#$ -o /dev/null\n#$ -e /dev/null\n"
END = 'exec &>> /f/"$JOB_ID.out"\nrun it\necho "$?" > /f/"$JOB_ID.ec"\n'


def script(
    spec: psij.JobSpec | None, monkeypatch: pytest.MonkeyPatch, environments: str = "mpi smp\n", **more: Any
) -> str:
    made, text = executor(), io.StringIO()
    monkeypatch.setattr(made, "_run_command", lambda words: environments if words == ["qconf", "-spl"] else "")
    context = {"psij": {"script_dir": "/f", "launch_command": ["run", "it"]}} | more
    made.generate_submit_script(psij.Job(spec), context, text)
    return text.getvalue()


@pytest.mark.parametrize(
    ("spec", "options", "exports"),
    [
        (psij.JobSpec("cg", inherit_environment=False), ["-N cg"], []),
        (psij.JobSpec("cg", name="a b/c.1", directory=Path("/w d")), ["-N a_b_c.1", "-wd '/w d'", "-V"], []),
        (psij.JobSpec("cg", name="9x", environment={"A": "b c"}), ["-N _9x", "-V"], ["export A='b c'"]),
        (
            psij.JobSpec(
                "cg",
                resources=psij.ResourceSpecV1(process_count=3),
                attributes=psij.JobAttributes(
                    queue_name="fast", account="own",
                    custom_attributes={"gridengine.ac": "metasched=app=cg,n=5", "slurm.x": "no"},
                ),
            ),
            ["-N cg", "-ac metasched=app=cg,n=5", "-V", "-q fast", "-A own", "-pe mpi 3"],
            [],
        ),
        (
            psij.JobSpec(
                "cg",
                resources=psij.ResourceSpecV1(process_count=2),
                attributes=psij.JobAttributes(custom_attributes={"gridengine.pe": "smp"}),
            ),
            ["-N cg", "-V", "-pe smp 2"],
            [],
        ),
        (psij.JobSpec("cg", resources=psij.ResourceSpecV1(process_count=1)), ["-N cg", "-V"], []),
    ],
)  # fmt: skip
def test_a_specification_becomes_a_script_with_options(
    spec: psij.JobSpec, options: list[str], exports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join(f"#$ {each}" for each in options)
    assert script(spec, monkeypatch) == f"{BEGIN}{lines}\n" + "\n".join(exports) + f"\n{END}"


def test_a_duration_becomes_a_limit_and_what_cannot_be_handed_over_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = script(psij.JobSpec("cg"), monkeypatch, formatted_job_duration="0:01:30")
    assert "#$ -l h_rt=0:01:30\n" in limited
    with pytest.raises(psij.SubmitException, match="has no specification"):
        script(None, monkeypatch)
    with pytest.raises(psij.SubmitException, match="no parallel environment for several processes"):
        script(psij.JobSpec("cg", resources=psij.ResourceSpecV1(process_count=2)), monkeypatch, environments="")


def test_commands_and_what_they_print() -> None:
    made = executor()
    assert made.get_submit_command(psij.Job(), Path("/f/job.sh")) == ["qsub", "-terse", "/f/job.sh"]
    assert made.job_id_from_submit_output("warning 1\n42\n") == "42"
    for out in ("", "none\n", "0\n", "-4\n"):
        with pytest.raises(psij.SubmitException, match="instead of a number"):
            made.job_id_from_submit_output(out)
    assert made.get_cancel_command("42") == ["qdel", "42"]
    with pytest.raises(InvalidJobStateError):
        made.process_cancel_command_output(1, 'denied: job "42" does not exist\n')
    with pytest.raises(psij.SubmitException, match="qdel failed with status 3: no"):
        made.process_cancel_command_output(3, "no")
    assert made.parse_list_output("id name\n-----\n 42 cg\n\n 43 lu\n") == ["42", "43"]


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", psij.JobState.QUEUED), ("hqw", psij.JobState.QUEUED), ("r", psij.JobState.ACTIVE),
        ("t", psij.JobState.ACTIVE), ("S", psij.JobState.ACTIVE), ("dr", psij.JobState.CANCELED),
        ("Eqw", psij.JobState.FAILED), ("dEqw", psij.JobState.FAILED),
    ],
)  # fmt: skip
def test_the_letters_of_a_state_tell_it(letters: str, state: psij.JobState) -> None:
    listed = f"<job_list><JB_job_number>42</JB_job_number><state>{letters}</state></job_list>"
    found = executor().parse_status_output(0, f"<job_info><queue_info>{listed}</queue_info></job_info>")
    assert {number: each.state for number, each in found.items()} == {"42": state}


@pytest.mark.parametrize(
    ("source", "words", "partition", "expected"),
    [
        (GridEngineSource("c", root="/sge", cell="own"), ["-n", "3", "-t", "5", "--comment=metasched:app=cg,n=9"],
         "new", ("new", timedelta(minutes=5), {"gridengine.ac": "metasched=app=cg,n=9"}, 3)),
        (GridEngineSource("c"), ["-p", "a,b"], "", ("a,b", None, None, 1)),
        (SlurmSource("s"), ["--comment=metasched:app=cg,n=9"], "",
         (None, None, {"slurm.comment": "metasched:app=cg,n=9"}, 1)),
    ],
)  # fmt: skip
def test_a_portable_job_is_handed_over_with_its_mark_and_its_requests(
    source: Any, words: list[str], partition: str, expected: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[Any] = []

    class Executor:
        def submit(self, job: psij.Job) -> None:
            handed.append(job.spec)
            job._native_id = "42"

    monkeypatch.setattr("metasched.schedulers.psij._executor", lambda name: handed.append(name) or Executor())
    for name in source.submission(()).environment:
        monkeypatch.setenv(name, "")
    assert handed_over(portable([*words, "/bin/true", "5"]), source, partition) == "42"
    name, spec = handed
    asked = spec.attributes
    assert (name, source.kind) in {("", "grid_engine"), ("slurm", "slurm")}
    default = psij.JobAttributes().duration
    assert (asked.queue_name, asked.duration, asked.custom_attributes, spec.resources.process_count) == (
        expected[0], expected[1] or default, expected[2], expected[3],
    )  # fmt: skip
    assert (spec.executable, spec.arguments, spec.launcher) == ("/bin/true", ["5"], "single")
    assert {name: os.environ[name] for name in source.submission(()).environment} == source.submission(()).environment


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (psij.SubmitException("no\nroom"), "c does not accept the job: no room"),
        (FileNotFoundError(2, "No such file or directory", "qsub"), "qsub cannot be run: No such file or directory"),
    ],
)
def test_why_no_job_is_handed_over_is_one_line(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Executor:
        def submit(self, job: psij.Job) -> None:
            raise error

    monkeypatch.setattr("metasched.schedulers.psij._executor", lambda _: Executor())
    with pytest.raises(RuntimeError, match=f"^{said}$"):
        handed_over(portable(["/bin/true"]), GridEngineSource("c"))
