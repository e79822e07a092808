"""Under a real MPI: lists of operations of all processes are in the order of the world, not of a communicator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.system.real_mpi import allow_root, calls, recorded

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("mpicc") is None or shutil.which("mpirun") is None, reason="MPI is not installed"),
]

#: In `turned`, process r of the world has rank 2 - r. Process r sends 10 r + s + 1 bytes to process s; its part in
#: other operations has 5 r + 4 bytes.
PROGRAM = r"""
#include <mpi.h>
int main(int argc, char** argv)
{
  int rank, own, to[3], from[3], parts[3], at[3] = {0, 100, 200}, both[2];
  char out[300], in[300];
  MPI_Comm turned, pair;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Comm_rank(turned, &own);
  for (int i = 0; i < 3; i++) {
    const int there = 2 - i;
    to[i]    = 10 * rank + there + 1;
    from[i]  = 10 * there + rank + 1;
    parts[i] = 5 * there + 4;
  }
  MPI_Alltoallv(out, to, at, MPI_BYTE, in, from, at, MPI_BYTE, turned);
  MPI_Gatherv(out, parts[own], MPI_BYTE, in, parts, at, MPI_BYTE, 0, turned);
  MPI_Scatterv(out, parts, at, MPI_BYTE, in, parts[own], MPI_BYTE, 1, turned);
  MPI_Allgatherv(out, parts[own], MPI_BYTE, in, parts, at, MPI_BYTE, turned);
  MPI_Reduce_scatter(out, in, parts, MPI_BYTE, MPI_BOR, turned);
  MPI_Comm_split(turned, own == 1, own, &pair);
  both[0] = 7;
  both[1] = 9;
  if (own != 1)
    MPI_Allgatherv(out, both[own / 2], MPI_BYTE, in, both, at, MPI_BYTE, pair);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_lists_of_all_processes_are_in_the_order_of_the_world(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_root(monkeypatch)
    trace = recorded(PROGRAM, library, 3, tmp_path).trace
    for rank in range(3):
        to, got = ([*row] for row in zip(*((10 * rank + s + 1, 10 * s + rank + 1) for s in range(3)), strict=True))
        own, parts = 5 * rank + 4, "4 9 14"
        assert calls(trace, rank)[1:6] == [
            f"alltoallv {sum(to)} {' '.join(map(str, to))} {sum(got)} {' '.join(map(str, got))} 6 6",
            f"gatherv {own} {parts if rank == 2 else '0 0 0'} 2 6 6",
            f"scatterv {parts if rank == 1 else '0 0 0'} {own} 1 6 6",
            f"allgatherv {own} {parts} 6 6",
            f"reducescatter {parts} 0 6",
        ]
    # Who the members of a smaller group are is not recorded: its lists are in the order of its ranks.
    assert calls(trace, 0)[6] == "allgatherv_on 2 9 7 9 6 6"
