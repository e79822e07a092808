/* Sweeps over a grid of N x N points, each point after its upper and its left neighbour: columns in strips, rows in blocks;
 * a process needs the border of the strip to its left for each block of rows, so that sweeps fill and drain a pipeline. */
#include "testbed.h"

enum { SWEEPS = 24, BLOCK = 128 };
static const double FLOPS_PER_POINT = 36.0, BYTES_PER_FLOP = 0.5;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long columns   = share(n, rank, size);
  const double strip   = 8.0 * n * columns;
  double* border       = buffer(BLOCK * sizeof *border);

  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    /* Every other sweep begins at the right. */
    const int before = sweep % 2 ? rank + 1 : rank - 1, after = sweep % 2 ? rank - 1 : rank + 1;
    for (long first = 0; first < n; first += BLOCK) {
      const long rows = first + BLOCK < n ? BLOCK : n - first;
      if (before >= 0 && before < size)
        MPI_Recv(border, (int)rows, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      compute(&here, FLOPS_PER_POINT * rows * columns, strip, BYTES_PER_FLOP);
      if (after >= 0 && after < size)
        MPI_Send(border, (int)rows, MPI_DOUBLE, after, 0, MPI_COMM_WORLD);
    }
  }

  release(border);
  MPI_Finalize();
  return 0;
}
