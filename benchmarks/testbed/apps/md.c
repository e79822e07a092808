/* Molecular dynamics of N Lennard-Jones particles, systolic: every process keeps its particles and passes a copy of them
 * round a ring, meeting the particles of all others in P stages; the energy is summed after every time step. */
#include "testbed.h"

enum { STEPS = 60, COORDINATES = 3 };
static const double FLOPS_PER_PAIR = 35.0, FLOPS_PER_MOVE = 30.0;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long mine      = share(n, rank, size);
  const int right      = (rank + 1) % size, left = (rank + size - 1) % size;

  const size_t room = COORDINATES * sizeof(double) * (n / size + 1);
  double* leaving   = buffer(room);
  double* arriving  = buffer(room);

  for (int step = 0; step < STEPS; step++) {
    for (int stage = 0; stage < size; stage++) {
      const long visiting = share(n, (rank + size - stage) % size, size);
      const long next     = share(n, (rank + size - stage - 1) % size, size);
      compute(&here, FLOPS_PER_PAIR * mine * visiting, 24.0 * (2.0 * mine + visiting), 0.7);
      if (stage < size - 1)
        MPI_Sendrecv(leaving, (int)(COORDINATES * visiting), MPI_DOUBLE, right, stage, arriving,
                     (int)(COORDINATES * next), MPI_DOUBLE, left, stage, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double local[2] = {1.0, 1.0}, global[2];
    compute(&here, FLOPS_PER_MOVE * mine, 72.0 * mine, 2.0);
    MPI_Allreduce(local, global, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

  release(arriving);
  release(leaving);
  MPI_Finalize();
  return 0;
}
