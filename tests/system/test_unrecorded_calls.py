"""Under a real MPI: each call that no action tells is counted by its name, and what is recorded stays right."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from metasched.tracing.recording import recorder
from tests.system.real_mpi import allow_root, calls, compiler_of, recorded

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("mpicc") is None or shutil.which("mpirun") is None, reason="MPI is not installed"),
]
LIBRARIES = ("openmpi", "mpich")


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_root(monkeypatch)


#: Windows, files, persistent operations of all, a cancelled receive (which is recorded), and in MPI-4 large counts.
CALLS = r"""
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
int main(int argc, char** argv)
{
  int rank, n;
  double out[64] = {0}, in[64] = {0};
  MPI_Win window;
  MPI_File file;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_create(in, sizeof in, sizeof *in, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  out[1] = 100 + rank;
  for (int step = 0; step < 3; step++) {
    MPI_Win_fence(0, window);
    for (int i = 0; i < 1 + rank; i++)
      MPI_Put(out + 1, 1, MPI_DOUBLE, next, 2, 1, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
  }
  double old = -1, compared = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
  MPI_Request got;
  MPI_Rget_accumulate(out, 1, MPI_DOUBLE, &old, 1, MPI_DOUBLE, next, 2, 1, MPI_DOUBLE, MPI_NO_OP, window, &got);
  MPI_Wait(&got, MPI_STATUS_IGNORE);
  MPI_Win_unlock(next, window);
  MPI_Win_free(&window);
  if (in[2] != 100 + before || old != 100 + rank)
    MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_File_open(MPI_COMM_SELF, argv[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_File_read_at(file, 0, out, 8, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Irecv(in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  in[0] = rank;
#ifdef OPEN_MPI
  MPIX_Allreduce_init(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
#else
  MPI_Allreduce_init(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
#endif
  for (int step = 0; step < 5; step++) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  if (out[0] != n * (n - 1) / 2)
    MPI_Abort(MPI_COMM_WORLD, 4);
#if MPI_VERSION >= 4
  MPI_Isend_c(in, 1, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &request);
  MPI_Recv_c(out, 1, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (out[0] != before)
    MPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Alltoallw_init_c(out, (MPI_Count[4]){0}, (MPI_Aint[4]){0}, (MPI_Datatype[4]){MPI_INT, MPI_INT, MPI_INT, MPI_INT},
                       in, (MPI_Count[4]){0}, (MPI_Aint[4]){0}, (MPI_Datatype[4]){MPI_INT, MPI_INT, MPI_INT, MPI_INT},
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Request_free(&request);
#endif
  MPI_Send(out, 3, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""
#: How often the processes of a ring call each in all, on three processes.
COUNTED = {
    "MPI_Win_create": 3, "MPI_Win_fence": 18, "MPI_Put": 18, "MPI_Win_lock": 3, "MPI_Rget_accumulate": 3,
    "MPI_Win_unlock": 3, "MPI_Win_free": 3, "MPI_File_open": 3, "MPI_File_read_at": 3, "MPI_File_close": 3,
    "MPI_Start": 15,
}  # fmt: skip
OF_ITS_OWN = {
    "openmpi": {"MPIX_Allreduce_init": 3},
    "mpich": {"MPI_Allreduce_init": 3, "MPI_Isend_c": 3, "MPI_Recv_c": 3, "MPI_Alltoallw_init_c": 3},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_that_no_action_tells_are_counted_by_name_and_do_what_they_do(library: str, tmp_path: Path) -> None:
    found = recorded(CALLS, library, 3, tmp_path)
    assert found.unrecorded == COUNTED | OF_ITS_OWN[library]
    for rank in range(3):
        assert calls(found.trace, rank) == ["init", "barrier", "send -333 1 12 6", "finalize"]


#: Two threads of each process communicate at once, the second one on a communicator of its own.
THREADS = r"""
#include <mpi.h>
#include <pthread.h>
static MPI_Comm others;
static int rank, n;
static void* work(void* none)
{
  for (int step = 0; step < 200; step++) {
    int sum, one = 1, got;
    MPI_Request requests[2];
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, others);
    if (sum != n)
      MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, others, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % n, 5, others, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return none;
}
int main(int argc, char** argv)
{
  int provided;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE)
    MPI_Abort(MPI_COMM_WORLD, 4);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_dup(MPI_COMM_WORLD, &others);
  pthread_create(&thread, NULL, work, NULL);
  for (int step = 0; step < 200; step++) {
    int got;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % n, step % 7, &got, 1, MPI_INT, MPI_ANY_SOURCE, step % 7,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  pthread_join(thread, NULL);
  MPI_Comm_free(&others);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_other_threads_call_is_counted_and_the_first_thread_is_recorded(library: str, tmp_path: Path) -> None:
    found = recorded(THREADS, library, 2, tmp_path)
    assert found.unrecorded == {
        "MPI_Comm_dup": 2,
        **{f"MPI_{name} by other threads": 400 for name in ("Allreduce", "Irecv", "Isend", "Waitall")},
    }
    for rank in range(2):
        turns = [each for _ in range(200) for each in (f"sendRecv 4 {1 - rank} 4 {1 - rank} 6 6", "barrier")]
        assert calls(found.trace, rank) == ["init", *turns, "finalize"]


#: Two processes start a third one, which gets and sends a number.
SPAWNING = r"""
#include <mpi.h>
int main(int argc, char** argv)
{
  int rank, sum = 0, one = 1;
  MPI_Comm parent, started;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &started, MPI_ERRCODES_IGNORE);
    MPI_Bcast(&one, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, started);
    if (rank == 0) {
      MPI_Request request;
      MPI_Recv(&sum, 1, MPI_INT, 0, 3, started, MPI_STATUS_IGNORE);
      MPI_Irecv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, started, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_disconnect(&started);
  } else {
    MPI_Bcast(&sum, 1, MPI_INT, 0, parent);
    MPI_Send(&sum, 1, MPI_INT, 0, 3, parent);
    MPI_Send(&sum, 1, MPI_INT, 0, 4, parent);
    MPI_Comm_disconnect(&parent);
  }
  MPI_Finalize();
  return 0;
}
"""


def test_calls_with_processes_that_the_program_starts_are_counted(tmp_path: Path) -> None:
    found = recorded(SPAWNING, "openmpi", 2, tmp_path)
    # The broadcast of both, and what the first receives: one message as it is, the other where it is waited for.
    assert found.unrecorded == {"MPI_Comm_spawn": 2, "calls with processes of another world": 4}
    for rank in range(2):
        assert calls(found.trace, rank) == ["init", "bcast 4 0 6", "finalize"]


#: A message that is sent after half a second, and looked for meanwhile.
PROBING = r"""
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv)
{
  int rank, got;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(500000);
    MPI_Send(&rank, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  } else {
    MPI_Probe(0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_looking_for_a_message_is_no_computation(library: str, tmp_path: Path) -> None:
    found = recorded(PROBING, library, 2, tmp_path)
    assert found.unrecorded == {}
    texts = [found.trace.table.text(action) for action in found.trace.processes[1].tolist()]
    computed = sum(float(text.split()[1]) for text in texts if text.startswith("compute"))
    assert computed < 0.05e9  # ns, of half a second
    assert calls(found.trace, 1) == ["init", "barrier", "recv 0 3 4 6", "finalize"]


#: Functions that ask or change something in their own process alone.
LOCAL = re.compile(
    r"MPIX?_(?:Wtime|Wtick|Pcontrol|Address|Alloc_mem|Free_mem|Initialized|Finalized|Is_thread_main|Query_\w+|Topo_test"
    r"|Aint_\w+|Attr_\w+|Keyval_\w+|Info_\w+|Op_\w+|Status_\w+|Group_\w+|Type_\w+|T_\w+|Get_(?!c$|accumulate)\w+"
    r"|Errhandler_\w+|Error_\w+|(?:Add|Delete|Remove)_error_\w+|Register_datarep(?:_c)?|Dims_create|Grequest_\w+"
    r"|Buffer_\w+|Pack\w*|Unpack\w*|Reduce_local(?:_c)?|Test_cancelled|Request_(?:get_status\w*|[cf]2\w+)|Message_[cf]2\w+"
    r"|(?:Open|Close)_port|(?:Publish|Unpublish|Lookup)_name|\w+_(?:f2c|c2f|f082c|c2f08)"
    r"|Cart(?:dim)?_(?:coords|get|map|rank|shift)|Graph(?:dims)?_(?:get|map|neighbors\w*)|Dist_graph_neighbors\w*"
    r"|File_set_(?:atomicity|errhandler|info)|(?:Comm|Win|Session)_set_\w+"
    r"|(?:Comm|Win|File|Session)_(?:get_\w+|call_errhandler|(?:create|free)_(?:keyval|errhandler)|delete_attr)"
    r"|Comm_(?:rank|size|compare|group|remote_\w+|test_inter|failure_\w+)|Win_(?:attach|detach|shared_query(?:_c)?)|File_seek)"
)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_function_of_mpi_is_recorded_counted_or_local(library: str, tmp_path: Path) -> None:
    compiler, source = compiler_of(library), tmp_path / "all.c"
    source.write_text("#include <mpi.h>\n#ifdef OPEN_MPI\n#include <mpi-ext.h>\n#endif\n", encoding="utf-8")
    declared = subprocess.run([compiler, "-E", "-P", str(source)], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\b(MPIX?_[A-Z][a-z]\w*)\(", declared))
    assert {"MPI_Send", "MPI_Comm_split", "MPI_Wtime"} <= known
    listing = ["nm", "-D", "--defined-only", str(recorder(compiler))]
    shown = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    ours = {line.split()[-1] for line in shown.splitlines()}
    assert {name for name in known - ours if not LOCAL.fullmatch(name)} == set()
    # What would be counted is no local one.
    assert {name for name in ours if LOCAL.fullmatch(name)} == set()
