/* Poisson's equation on a cube of N x N x N points by V-cycles of multigrid: slabs of planes, halved in each direction
 * from level to level; both borders of a slab are exchanged with the neighbours that have planes on the level. */
#include "testbed.h"

enum { CYCLES = 30, COARSEST = 4 };
static const double FLOPS_PER_POINT = 50.0, BYTES_PER_FLOP = 1.6;

/* One smoothing on a level of `side` points in each direction. */
static void smooth(const machine_t* here, double* border, double* ghost, long side, int rank, int size)
{
  const int active  = side < size ? (int)side : size;
  const long planes = rank < active ? share(side, rank, active) : 0;
  MPI_Request requests[4];
  int pending = 0;
  for (int way = -1; planes > 0 && way <= 1; way += 2)
    if (rank + way >= 0 && rank + way < active) {
      MPI_Irecv(ghost, (int)(side * side), MPI_DOUBLE, rank + way, 0, MPI_COMM_WORLD, &requests[pending++]);
      MPI_Isend(border, (int)(side * side), MPI_DOUBLE, rank + way, 0, MPI_COMM_WORLD, &requests[pending++]);
    }
  MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
  compute(here, FLOPS_PER_POINT * side * side * planes, 16.0 * side * side * planes, BYTES_PER_FLOP);
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  double* border       = buffer(n * n * sizeof *border);
  double* ghost        = buffer(n * n * sizeof *ghost);

  for (int cycle = 0; cycle < CYCLES; cycle++) {
    int level = 0;
    for (; n >> level > COARSEST; level++)
      smooth(&here, border, ghost, n >> level, rank, size);
    for (; level >= 0; level--)
      smooth(&here, border, ghost, n >> level, rank, size);
    double local = 1.0, global;
    MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

  release(ghost);
  release(border);
  MPI_Finalize();
  return 0;
}
