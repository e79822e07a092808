"""Submit commands are read as their schedulers read them, and a partition is put where it counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.clusters.partition import Holder
from metasched.records import InputError
from metasched.schedulers import submission
from metasched.schedulers.flux.source import FluxSource
from metasched.schedulers.grid_engine import submission as qsub
from metasched.schedulers.htcondor import submission as condor
from metasched.schedulers.pbs import submission as pbs
from metasched.schedulers.portable import portable
from metasched.schedulers.psij import handed_over
from metasched.schedulers.slurm import submission as sbatch
from metasched.schedulers.submission import JobRequest, Submission, directives, hand_over

WORD = st.text("abz-=,./' $;\n", min_size=0, max_size=8)


@given(st.lists(WORD, max_size=8))
def test_words_of_sbatch_stay_in_order_and_what_is_added_is_one_option_before_the_script(words: list[str]) -> None:
    handed = sbatch.placed(words, "fast")
    place = handed.index("--partition=fast")
    assert handed[:place] + handed[place + 1 :] == words
    assert place <= sbatch.script_at(words)


@given(st.lists(WORD, max_size=6), st.lists(WORD, max_size=3))
def test_words_of_qsub_stay_but_for_the_queues_that_are_replaced(script: list[str], more: list[str]) -> None:
    words = ["-cwd", "-q", "fast,slow", "-pe", "mpi", "4", "job.sh", *script, *more]
    assert qsub.placed(words, "slow") == ["-q", "slow", "-cwd", "-pe", "mpi", "4", "job.sh", *script, *more]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["-HQn4", "job.sh"], 1),
        (["-HQn", "4", "job.sh"], 2),
        (["--exclusive", "job.sh", "--hold"], 1),
        (["--mem", "4G", "--nice", "job.sh"], 3),
        (["--hold", "--", "job.sh"], 2),
        ([], 0),
    ],
)
def test_the_script_of_sbatch_is_found(words: list[str], place: int) -> None:
    assert sbatch.script_at(words) == place


def test_a_scheduler_that_psij_hands_no_jobs_to_is_named() -> None:
    with pytest.raises(InputError, match=r"PSI/J cannot submit to flux here, expected one of slurm, grid_engine"):
        handed_over(portable(["/bin/true"]), FluxSource("f"))


@pytest.mark.parametrize(
    ("line", "array"),
    [
        ("#SBATCH --array=1-9", True), ("#SBATCH -J x -a 1-9", True), ("#SBATCH -a1-9", True), ("#SBATCH --ar 1", True),
        ("#$ -t 1-9", True), ("#SBATCH -t 10 --account=a", False), ("#$ -N t", False), ("echo -t", False),
    ],
)  # fmt: skip
def test_a_script_that_asks_for_an_array_is_known(line: str, array: bool, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    assert portable([str(script)]).is_array is array


def test_what_a_script_says_counts_where_the_command_says_nothing(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -p slow -n 3\n#SBATCH --comment='metasched:app=cg,n=5'\n")
    asked = sbatch.asked_for(["-n", "2", str(script), "-n", "9", "--partition=own"])
    assert asked.mark is not None
    assert (asked.mark.problem_size, asked.processors, asked.partitions) == (5.0, 2, ("slow",))
    script.write_text("#!/bin/sh\n#$ -q slow -pe mpi 3-5\n#$ -ac metasched=app=cg,n=5\n")
    asked = qsub.asked_for(["-l", "h_rt=60", str(script), "-q", "own"])
    assert asked.mark is not None
    assert (asked.mark.problem_size, asked.processors, asked.partitions) == (5.0, 3, ("slow",))
    assert qsub.asked_for(["-soft", "-q", "fast", "-hard", str(script)]).partitions == ("slow",)
    asked = qsub.asked_for(["-cwd", "-pe", "mpi", "4", str(script)])
    assert (asked.mark is not None, asked.processors, asked.partitions) == (True, 4, ("slow",))


@pytest.mark.parametrize(
    "words",
    [["-G", "1"], ["-Ga100:2"], ["--gpus=1"], ["--gpus", "a100:1"], ["--gpus-per-node=1"], ["--gpus-per-task=1"],
     ["--gpus-per-socket=1"], ["--gres=gpu:a100:2"], ["--gres", "fpga"], ["--tres-per-task=gres/gpu:1"]],
    ids=" ".join,
)  # fmt: skip
def test_for_a_job_with_gpus_no_cluster_is_chosen(words: list[str], tmp_path: Path) -> None:
    mark = "--comment=metasched:app=cg,n=5"
    assert sbatch.asked_for([mark, "job.sh", *words]).mark is not None  # words of the script
    assert sbatch.asked_for([mark, *words, "job.sh"]).mark is None
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH {' '.join(words)}\n")
    assert sbatch.asked_for([mark, str(script)]).mark is None


@pytest.mark.parametrize("asked_for", [sbatch.asked_for, qsub.asked_for, pbs.asked_for, condor.asked_for])
def test_a_script_that_is_a_pipe_is_left_to_the_command_that_submits_it(
    asked_for: Callable[[list[str]], JobRequest], tmp_path: Path
) -> None:
    pipe, text = str(tmp_path / "pipe"), b"#!/bin/sh\n#SBATCH -n 3\n#$ -pe mpi 3\n#PBS -l select=3\nrequest_cpus = 3\n"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    os.write(held, text)
    assert asked_for([pipe]).processors == 1
    assert os.read(held, 1000) == text
    os.close(held)
    (tmp_path / "file").write_bytes(text)
    assert asked_for([str(tmp_path / "file")]).processors == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-A", "", "job.sh"], ["-A", "", "job.sh"]),
        (["-N", "", "-V", "-h", "-q", "slow", "job.sh"], ["-N", "", "-V", "-h", "job.sh"]),
        (["-Vqslow", "-v", "", "job.sh", "-q", "own"], ["-V", "-v", "", "job.sh", "-q", "own"]),
        (["-q", "", "-l", "ncpus=2"], ["-l", "ncpus=2"]),
        (["-A", "x", "--", "/bin/sleep", "60"], ["-A", "x", "--", "/bin/sleep", "60"]),
        (["--", "-q"], ["--", "-q"]),
        (["-A", "--", "job.sh"], ["-A", "--", "job.sh"]),
    ],
)
def test_a_queue_takes_no_words_of_qsub_apart(words: list[str], expected: list[str]) -> None:
    assert pbs.placed(words, "fast") == ["-q", "fast", *expected]


@given(st.lists(WORD, max_size=6))
def test_no_words_are_too_strange_to_be_read(words: list[str]) -> None:
    assert sbatch.asked_for(words).processors >= 1
    assert qsub.asked_for(words).processors >= 1


def test_words_are_handed_over_as_they_are_and_a_command_that_is_not_there_is_named() -> None:
    words = ("printf", "%s|", "$(touch x)", "a b", "';'", "*")
    assert hand_over(Submission(words), capture=True) == (0, "$(touch x)|a b|';'|*|")
    assert hand_over(Submission(("printenv", "CELL"), {"CELL": "c"}), capture=True) == (0, "c")
    assert hand_over(Submission(("false",)), capture=True) == (1, "")
    with pytest.raises(RuntimeError, match="no-such-command cannot be run: no such file"):
        hand_over(Submission(("no-such-command",)), capture=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gres=gpu:1", "/bin/true"], "unrecognized arguments: --gres=gpu:1"),
        (["-n", "many", "/bin/true"], "invalid int value"),
        (["-n", "0", "/bin/true"], "--ntasks is 0"),
        (["-n", "2"], "script"),
        (["/no/such/script"], "not an executable file"),
        (["/etc/passwd"], "not an executable file"),
        (["-t", "soon", "/bin/true"], "--time is 'soon'"),
        (["-J", "a'b", "/bin/true"], "--job-name is"),
        (["--comment=metasched:app=cg,n=1 $(x)", "/bin/true"], "--comment is"),
    ],
)
def test_what_not_every_scheduler_takes_is_refused(words: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("$", r"\$").replace("(", r"\(")):
        portable(words)


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("metasched:app=cg,n=abc", "the comment says n=abc, expected a problem size above 0, such as n=1400"),
        ("metasched:app=cg,n=1_000", "the comment says n=1_000, expected a problem size"),
        ("metasched:app=cg,n=-inf", "the comment says n=-inf, expected a problem size"),
        ("metasched:app=cg", "the comment says app=cg and no problem size, expected a problem size"),
        (
            "metasched:n=5",
            "the comment says metasched:n=5 and names no application, expected metasched:app=NAME,n=SIZE",
        ),
        ("metasched:app=" + "x" * 65 + ",n=5", "expected a name of at most 64 letters"),
        ("metasched:app=cg,n=1,n=2", "the comment says n=1 and n=2, expected one of them"),
        (
            "metasched:app=cg,note=" + "x" * 482 + ",n=1400",
            "the comment's mark has 501 characters, expected at most 500",
        ),
        ("metasched:app=cg," + "n=1400," * 68 + "p=00000004,n=1400", ""),
        ("night run", "its comment does not name its application, expected metasched:app=NAME,n=SIZE"),
        ("metasched:off", "its comment does not name its application"),
        ("metasched:app=cg,n=5", ""),
    ],
)
def test_why_a_comment_marks_no_application(comment: str, why: str) -> None:
    asked = JobRequest(comment, 1, ())
    assert why in asked.why_no_mark
    assert (asked.mark is None) == bool(why) == bool(asked.why_no_mark)


def test_a_job_that_asks_for_devices_has_no_mark_that_counts() -> None:
    asked = JobRequest("metasched:app=cg,n=5", 1, (), devices=True)
    assert (asked.mark, asked.why_no_mark) == (None, "it asks for GPUs or other generic resources")


def test_who_a_job_of_slurm_is_of_is_read_from_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -A bio -q long\n")
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert sbatch.asked_for(["--account=chem", str(script)]).holder == Holder("long", "root", "chem")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)
    assert sbatch.asked_for([str(script)]).holder == Holder("long", "", "bio")


def test_no_more_of_a_script_is_read_than_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#$ -q new\n#$ -N late\n")
    assert directives(str(script), "#$") == ["-q", "new", "-N", "late"]
    monkeypatch.setattr(submission, "MOST_SCRIPT", len("#$ -q new\n"))
    assert directives(str(script), "#$") == ["-q", "new"]
    assert directives(str(tmp_path / "none"), "#$") == []
