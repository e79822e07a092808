"""The recorder under a real MPI: every call is there, loops are folded, what is killed stays readable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import call, status_of

from metasched.records import InputError
from metasched.store.files.recorded_traces import read_recorded
from metasched.store.files.signatures import SIGNATURE, read_document, trace_of_signature
from metasched.tracing.recording import record, recorder
from tests.system.real_mpi import LAUNCHERS, MPIRUN, allow_root, built, calls, compiler_of, recorded

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("mpicc") is None or shutil.which("mpirun") is None, reason="MPI is not installed"),
]

#: A ring with a sum now and then; each process also writes down what it calls. Process 1 may abort.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv)
{
  int rank, n, steps = atoi(argv[1]), die = atoi(argv[2]);
  char name[512];
  double out[1000] = {0}, in[1000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  snprintf(name, sizeof name, "%s/log-%d", argv[3], rank);
  FILE* log = fopen(name, "w");
  setvbuf(log, NULL, _IOLBF, 0);
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int step = 0; step < steps; step++) {
    MPI_Request requests[2];
    MPI_Irecv(in, 100 + step % 3, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    fprintf(log, "irecv %d 1 %d 6\n", before, 8 * (100 + step % 3));
    MPI_Isend(out, 100 + step % 3, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[1]);
    fprintf(log, "isend %d 1 %d 6\n", next, 8 * (100 + step % 3));
    if (step % 2) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      fprintf(log, "waitall 2\n");
    } else {
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      fprintf(log, "wait %d %d 1\n", rank, next);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      fprintf(log, "wait %d %d 1\n", before, rank);
    }
    if (step % 5 == 4) {
      MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      fprintf(log, "allreduce 8 0 6\n");
      MPI_Bcast(out, 3, MPI_INT, 0, half);
      fprintf(log, "bcast_on %d 12 %d 6\n", n / 2, rank % 2);
    }
    if (die)
      usleep(100000);
    if (die && step == steps - 1) {
      if (rank == 1) {
        if (die == 2)
          kill(getpid(), 9);
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
      sleep(30);
    }
  }
  fclose(log);
  MPI_Finalize();
  return 0;
}
"""
#: Microseconds of a call that does nothing, the best of some rounds.
COST = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv)
{
  double best = 1e9;
  MPI_Init(&argc, &argv);
  for (int round = 0; round < 9; round++) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < 100000; i++) {
      MPI_Barrier(MPI_COMM_SELF);
      MPI_Send(0, 0, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    }
    const double took = (MPI_Wtime() - begin) / 200000;
    best = took < best ? took : best;
  }
  printf("%.4f\n", 1e6 * best);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_root(monkeypatch)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    built = {}
    for name, text in (("ring", "#include <signal.h>" + PROGRAM), ("cost", COST)):
        source = folder / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        built[name] = folder / name
        subprocess.run(["mpicc", "-O2", str(source), "-o", str(built[name])], check=True)
    return built


def test_the_folded_trace_holds_every_call_of_a_plain_log(programs: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert record([*MPIRUN, "-np", "4", str(programs["ring"]), "30", "0", str(tmp_path)], folder) == 0
    found = read_recorded(folder)
    for rank in range(4):
        log = (tmp_path / f"log-{rank}").read_text(encoding="ascii").splitlines()
        assert calls(found.trace, rank) == ["init", *log, "finalize"]
    assert found.cut == ()


def test_a_signature_holds_every_call_of_a_plain_log(programs: dict[str, Path], tmp_path: Path) -> None:
    folder, signature = tmp_path / "run", tmp_path / "signature.json"
    assert record([*MPIRUN, "-np", "4", str(programs["ring"]), "30", "0", str(tmp_path)], folder) == 0
    assert status_of("signature", "extract", str(folder), "-o", str(signature)) == 0
    # What fit starts from again is the folded program of the file, not the trace.
    again = trace_of_signature(read_document(signature, SIGNATURE), str(signature))
    for rank in range(4):
        log = (tmp_path / f"log-{rank}").read_text(encoding="ascii").splitlines()
        assert calls(again, rank) == ["init", *log, "finalize"]


def test_a_long_loop_stays_small(programs: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    record([*MPIRUN, "-np", "1", str(programs["cost"])], folder)
    assert read_recorded(folder).trace.events > 1_000_000
    assert (folder / "rank-0").stat().st_size < 10_000


@pytest.mark.parametrize("how", ["1", "2"], ids=["aborted", "killed"])
def test_what_ends_early_stays_readable(
    programs: dict[str, Path], tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert record([*MPIRUN, "-np", "2", str(programs["ring"]), "30", how, str(tmp_path)], folder) != 0
    for rank in range(2):
        found = (folder / f"rank-{rank}").read_text(encoding="ascii")
        assert "isend" in found
        assert found.endswith("cut\n")
    read = read_recorded(folder)
    assert 1 in read.cut
    for rank in range(2):
        # What is killed has written at most about a second ago: ten steps. Calls up to there are all there.
        kept = [text for text in calls(read.trace, rank) if text != "init"]
        log = (tmp_path / f"log-{rank}").read_text(encoding="ascii").splitlines()
        assert kept == log[: len(kept)]
        assert sum(text.startswith("isend") for text in kept) >= 5
    status, _, err = call(capsys, "signature", "extract", str(folder), "-o", str(tmp_path / "cut.json"))
    assert status == 0
    assert "did not end normally, process" in err


def test_a_call_costs_less_than_half_a_microsecond(
    programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*MPIRUN, "-np", "1", str(programs["cost"])]
    alone = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    there = {**os.environ, "METASCHED_TRACE": str(tmp_path), "LD_PRELOAD": str(recorder())}
    under = float(subprocess.run(command, capture_output=True, text=True, check=True, env=there).stdout)
    print(f"\na recorded call costs {under - alone:.3f} us more")
    assert under - alone < 0.5


def test_one_program_is_recorded_at_a_time(programs: dict[str, Path], tmp_path: Path) -> None:
    one = " ".join([*MPIRUN, "-np", "1", str(programs["ring"]), "2", "0", str(tmp_path)])
    with pytest.raises(InputError, match="the launcher starts more than one MPI program"):
        record(["sh", "-c", f"{one}; {one}"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_from_runs_to_a_prediction(
    programs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signatures = []
    for count in (4, 6, 8):
        log = str(tmp_path)
        folder = tmp_path / str(count)
        assert record([*MPIRUN, "-np", str(count), str(programs["ring"]), "30", "0", log], folder) == 0
        signatures.append(str(tmp_path / f"{count}.json"))
        status_of("signature", "extract", str(folder), "-o", signatures[-1])
    application = str(tmp_path / "app.json")
    status_of("signature", "fit", *signatures, "-o", application)
    capsys.readouterr()
    status, out, _ = call(
        capsys, "signature", "expand", application, "--processes", "16", "-o", str(tmp_path / "16.ti"), "--json"
    )
    assert status == 0
    assert json.loads(out)["processes"] == 16


#: A ring with sums, one of them in place, by the binding that is put in.
FORTRAN = """
program ring
  {use}
  integer :: rank, n, step, before, next, ierr
  {request} :: requests(2)
  double precision :: out(1000), in(1000), total(1), part(1)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  next = mod(rank + 1, n)
  before = mod(rank + n - 1, n)
  do step = 1, 20
     call MPI_Irecv(in, 100, MPI_DOUBLE_PRECISION, before, 1, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Isend(out, 100, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(2), ierr)
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
     part(1) = rank
     call MPI_Allreduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
     call MPI_Allreduce(MPI_IN_PLACE, part, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
     if (part(1) /= total(1)) call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  end do
  call MPI_Bcast(out, 3, MPI_INTEGER, 1, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program ring
"""
BINDINGS = {
    "mpif.h": ("implicit none\n  include 'mpif.h'", "integer"),
    "mpi": ("use mpi", "integer"),
    "mpi_f08": ("use mpi_f08", "type(MPI_Request)"),
}


@pytest.mark.parametrize(
    ("library", "binding"),
    [("openmpi", "mpif.h"), ("openmpi", "mpi"), ("openmpi", "mpi_f08"), ("mpich", "mpif.h"), ("mpich", "mpi")],
)
def test_programs_in_fortran_are_recorded(library: str, binding: str, tmp_path: Path) -> None:
    compiler = compiler_of(library, "mpif90")
    use, request = BINDINGS[binding]
    empty = tmp_path / "empty.f90"
    empty.write_text(f"program empty\n  {use}\nend program empty\n", encoding="utf-8")
    if subprocess.run([compiler, "-c", str(empty), "-o", str(tmp_path / "empty.o")], check=False).returncode:
        pytest.skip(f"{compiler} is installed without {binding}")
    source, program, to = tmp_path / "ring.f90", tmp_path / "ring", tmp_path / "trace"
    source.write_text(FORTRAN.format(use=use, request=request), encoding="utf-8")
    subprocess.run([compiler, "-w", "-fallow-argument-mismatch", str(source), "-o", str(program)], check=True)
    launcher = [*LAUNCHERS[library], "-np", "3" if library == "openmpi" else "2"]
    assert record([*launcher, str(program)], to, f"mpicc.{library}") == 0
    recorded = read_recorded(to)
    n = len(recorded.trace.processes)
    turn = ["irecv 0 1 800 6", f"isend {2 % n} 1 800 6", "waitall 2", "allreduce 8 0 6", "allreduce 8 0 6"]
    assert calls(recorded.trace, 1) == [
        "init", *(20 * turn), "bcast 12 1 6", "finalize",
    ]  # fmt: skip


#: Calls whose actions follow from what MPI answers, or from where the program leaves its data; and a process that ends
#: after the trace has been written.
CALLS = r"""
#include <mpi.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv)
{
  int rank, n, counts[4] = {2, 2, 2, 2}, at[4] = {0, 2, 4, 6}, flag = 0;
  double out[256] = {0}, in[256];
  MPI_Request requests[4];
  MPI_Message message;
  MPI_Status found;
  MPI_Comm half, between, box;
  MPI_Datatype column;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  for (int first = 0; first < n; first++) { // communicators with one handle
    MPI_Comm pair;
    const int in_it = rank == first || rank == (first + 1) % n;
    MPI_Comm_split(MPI_COMM_WORLD, in_it ? 0 : MPI_UNDEFINED, rank != first, &pair);
    if (pair == MPI_COMM_NULL)
      continue;
    if (rank == first)
      MPI_Send(out, first + 1, MPI_DOUBLE, 1, first, pair);
    else
      MPI_Recv(in, 256, MPI_DOUBLE, 0, first, pair, MPI_STATUS_IGNORE);
    MPI_Comm_free(&pair);
  }
  MPI_Sendrecv(out, 10, MPI_DOUBLE, next, 5, in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Irecv(in, 100, MPI_DOUBLE, before, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, 10, MPI_DOUBLE, next, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Irecv(in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, 11, MPI_DOUBLE, next, 8, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Irecv(in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Send(out, 12, MPI_DOUBLE, next, 9, MPI_COMM_WORLD);
  while (!flag)
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  MPI_Isend(out, 6, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Mprobe(before, 4, MPI_COMM_WORLD, &message, &found);
  MPI_Mrecv(in, 100, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  const int here = rank == 1;
  MPI_Gather(here ? MPI_IN_PLACE : out, here ? 0 : 2, here ? MPI_DATATYPE_NULL : MPI_DOUBLE, here ? in : NULL,
             here ? 2 : 0, here ? MPI_DOUBLE : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  MPI_Scatter(here ? out : NULL, here ? 2 : 0, here ? MPI_DOUBLE : MPI_DATATYPE_NULL, here ? MPI_IN_PLACE : in,
              here ? 0 : 2, here ? MPI_DATATYPE_NULL : MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, counts, at, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, at, MPI_DOUBLE, MPI_COMM_WORLD);
  const int low = rank > 0 ? rank - 1 : MPI_PROC_NULL, high = rank < n - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Recv_init(in, 5, MPI_DOUBLE, low, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in + 50, 5, MPI_DOUBLE, high, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(out, 5, MPI_DOUBLE, low, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Ssend_init(out, 5, MPI_DOUBLE, high, 1, MPI_COMM_WORLD, &requests[3]);
  for (int step = 0; step < 2; step++) {
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 4; i++)
    MPI_Request_free(&requests[i]);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 77, &between);
  MPI_Bcast(out, 9, MPI_INT, rank == 0 ? MPI_ROOT : rank < 2 ? MPI_PROC_NULL : 0, between);
  MPI_Type_vector(8, 2, 16, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv_replace(in, 1, column, next, 3, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &(int){0}, 0, &box);
  MPI_Neighbor_alltoall(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, box);
  MPI_Iallreduce(out, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Reduce_scatter_block(out, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Win window;
  MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_free(&window);
  MPI_Datatype huge;
  MPI_Type_contiguous(1 << 29, MPI_DOUBLE, &huge);
  MPI_Type_commit(&huge);
  MPI_Send(out, 1, huge, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  int turn[2];
  if (pipe(turn))
    return 1;
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    exit(read(turn[0], &byte, 1) != 1);
  }
  MPI_Finalize();
  if (write(turn[1], "", 1) != 1)
    return 1;
  waitpid(child, NULL, 0);
  return 0;
}
"""
#: What process 2 of 4 does in it.
DONE = """init
recv 1 1 16 6
send 3 2 24 6
sendRecv 80 3 80 1 6 6
barrier
isend 3 7 80 6
irecv 1 7 80 6
wait 1 2 7
wait 2 3 7
isend 3 8 88 6
irecv 1 8 88 6
waitall 2
send 3 9 96 6
irecv 1 9 96 6
wait 1 2 9
isend 3 4 24 6
recv 1 4 24 6
wait 2 3 4
barrier
gather 16 0 1 6 6
scatter 0 16 1 6 6
alltoallv 64 16 16 16 16 64 16 16 16 16 6 6
allgatherv 16 16 16 16 16 6 6
irecv 1 1 40 6
irecv 3 1 40 6
isend 1 1 40 6
issend 3 1 40 6
waitall 4
irecv 1 1 40 6
irecv 3 1 40 6
isend 1 1 40 6
issend 3 1 40 6
waitall 4
bcast_on 4 36 0 6
sendRecv 128 3 128 1 6 6
irecv 1 0 24 6
irecv 3 0 24 6
isend 1 0 24 6
isend 3 0 24 6
waitall 4
allreduce 32 0 6
reducescatter 16 16 16 16 0 6
send -333 0 4294967296 6
finalize"""


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_actions_follow_from_what_mpi_answers(library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, to = built(CALLS, library, tmp_path), tmp_path / "trace"
    launched = [*LAUNCHERS[library], "-np", "4", str(program)]
    status, _, err = call(
        capsys, "signature", "record", "-o", str(to), "--compiler", compiler_of(library), "--", *launched
    )
    assert status == 0
    assert "the trace lacks calls: 20 of MPI_Comm_split, " in err
    trace = read_recorded(to).trace
    assert calls(trace, 2) == DONE.splitlines()
    # At a border a persistent request without a partner begins, but nobody waits for it.
    assert [each for each in calls(trace, 0) if each.startswith("waitall")] == ["waitall 2"] * 4


#: Receives that are cancelled before anything comes, ended in several ways, and one whose message is there by then.
GIVEN_UP = r"""
#include <mpi.h>
int main(int argc, char** argv)
{
  int rank, n, flag = 0;
  double out = 0, in[3];
  MPI_Request requests[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  for (int step = 0; step < 3; step++) {
    MPI_Irecv(in, 1, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 1, 1, MPI_DOUBLE, before, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&out, 1, MPI_DOUBLE, next, 7, MPI_COMM_WORLD, &requests[2]);
    MPI_Cancel(&requests[0]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Irecv(in, 1, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, requests);
  MPI_Cancel(requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 2, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, requests);
  MPI_Cancel(requests);
  while (!flag)
    MPI_Test(requests, &flag, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, requests);
  MPI_Cancel(requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 1, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, requests);
  MPI_Cancel(requests);
  MPI_Request_free(requests);
  MPI_Recv_init(in, 1, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, requests);
  MPI_Start(requests);
  MPI_Cancel(requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Request_free(requests);
  MPI_Send(&out, 1, MPI_DOUBLE, next, 8, MPI_COMM_WORLD);
  MPI_Probe(before, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 1, MPI_DOUBLE, before, 8, MPI_COMM_WORLD, requests);
  MPI_Cancel(requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_receives_that_are_cancelled_are_none(library: str, tmp_path: Path) -> None:
    found = recorded(GIVEN_UP, library, 3, tmp_path)
    step = ["irecv 0 7 8 6", "isend 2 7 8 6", "waitall 2"]
    too_late = ["send 2 8 8 6", "irecv 0 8 8 6", "wait 0 1 8"]
    assert calls(found.trace, 1) == ["init", *3 * step, *too_late, "finalize"]
    assert found.unrecorded == {}


#: Arguments that mean nothing to a process may be anything, and MPI answers what is wrong where a program asks it to.
MEANINGLESS = r"""
#include <mpi.h>
#include <string.h>
int main(int argc, char** argv)
{
  int rank, counts[4] = {3, 3, 3, 3}, at[4] = {0, 3, 6, 9};
  double out[64] = {0}, in[64];
  MPI_Datatype junk;
  MPI_Comm half, between;
  memset(&junk, 0, sizeof junk);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype at_root = rank == 0 ? MPI_DOUBLE : junk;
  MPI_Gather(out, 3, MPI_DOUBLE, in, 3, at_root, 0, MPI_COMM_WORLD);
  MPI_Scatter(out, 3, at_root, in, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 77, &between);
  const int root = rank == 0 ? MPI_ROOT : rank < 2 ? MPI_PROC_NULL : 0;
  MPI_Datatype of_others = rank < 2 ? junk : MPI_DOUBLE;
  MPI_Gather(out, 3, of_others, in, 3, at_root, root, between);
  MPI_Scatter(out, 3, at_root, in, 3, of_others, root, between);
  MPI_Gatherv(out, 3, of_others, in, counts, at, at_root, root, between);
  MPI_Scatterv(out, counts, at, at_root, in, 3, of_others, root, between);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (MPI_Barrier(MPI_COMM_NULL) == MPI_SUCCESS || MPI_Bcast(out, 1, MPI_DOUBLE, 0, MPI_COMM_NULL) == MPI_SUCCESS)
    return 1;
  MPI_Finalize();
  return 0;
}
"""
#: What processes 1 and 3 of 4 do in it.
MEANT = (
    "gather 24 0 0 6 6|scatter 0 24 0 6 6|gather_on 4 0 0 -333 6 6|scatter_on 4 0 0 -333 6 6|"
    "gatherv_on 4 0 0 0 -333 6 6|scatterv_on 4 0 0 0 -333 6 6",
    "gather 24 0 0 6 6|scatter 0 24 0 6 6|gather_on 4 24 0 0 6 6|scatter_on 4 0 24 0 6 6|"
    "gatherv_on 4 24 0 0 0 6 6|scatterv_on 4 0 0 24 0 6 6",
)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_program_goes_on_whatever_stands_where_mpi_reads_nothing(library: str, tmp_path: Path) -> None:
    program, to = built(MEANINGLESS, library, tmp_path), tmp_path / "trace"
    launcher = [*LAUNCHERS[library], "-np", "4", str(program)]
    # Variables without a value hold what no handle is.
    assert record(launcher, to, f"mpicc.{library}", options=["-ftrivial-auto-var-init=pattern"]) == 0
    for rank, meant in zip((1, 3), MEANT, strict=True):
        assert calls(read_recorded(to).trace, rank)[1:7] == meant.split("|")
