/* Two phases of different complexity on N items: a balanced one that transforms and transposes them, N log N, and one in
 * which every item meets those before it, N^2, so that the last process has most to do; then the results are gathered.
 * Markers say when each process began a phase and when it had done its own part of it. */
#include "testbed.h"

enum { TRANSFORMS = 200, ROUNDS = 20 };
static const double FLOPS_PER_PAIR = 12.0;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here  = machine_here();
  const long n          = atol(argv[1]);
  const double mine     = (double)n / size;
  const int fields      = 32; /* doubles an item carries through the first phase */
  const int block       = (int)ceil(fields * mine / size);
  double* before        = buffer((size_t)block * size * sizeof *before);
  double* after         = buffer((size_t)block * size * sizeof *after);
  const double data     = 8.0 * fields * mine;
  const double position = 2.0 * rank + 1.0; /* items before the middle of this process's block, in half blocks */

  MPI_Barrier(MPI_COMM_WORLD);
  phase_begin(1);
  for (int transform = 0; transform < TRANSFORMS; transform++) {
    compute(&here, 5.0 * fields * mine * log2((double)n), data, 0.8);
    MPI_Alltoall(before, block, MPI_DOUBLE, after, block, MPI_DOUBLE, MPI_COMM_WORLD);
  }
  phase_end(1);

  MPI_Barrier(MPI_COMM_WORLD);
  phase_begin(2);
  for (int round = 0; round < ROUNDS; round++)
    compute(&here, FLOPS_PER_PAIR * mine * mine * position / 2.0, 8.0 * n, 0.7);
  phase_end(2);
  MPI_Allgather(before, (int)ceil(mine), MPI_DOUBLE, after, (int)ceil(mine), MPI_DOUBLE, MPI_COMM_WORLD);

  release(after);
  release(before);
  MPI_Finalize();
  return 0;
}
