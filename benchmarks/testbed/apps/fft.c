/* One-dimensional complex FFT of N points by the transpose algorithm, repeated: N is laid out as a matrix whose rows are
 * divided over the processes; transforms along one axis, twiddle factors, an all-to-all transposition, transforms along
 * the other axis, and a second transposition that brings the result back into natural blocks. */
#include "testbed.h"

enum { TRANSFORMS = 12, COMPLEX = 2 };
static const double BYTES_PER_FLOP = 0.8;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const double mine    = (double)n / size;
  const double half    = 5.0 * mine * log2((double)n) / 2.0; /* flops along one of the two axes */
  const double data    = COMPLEX * sizeof(double) * mine;
  const int block      = (int)ceil(COMPLEX * mine / size); /* doubles for each partner of a transposition */

  double* before = buffer((size_t)block * size * sizeof *before);
  double* after  = buffer((size_t)block * size * sizeof *after);

  for (int transform = 0; transform < TRANSFORMS; transform++) {
    compute(&here, half, data, BYTES_PER_FLOP);
    compute(&here, 6.0 * mine, data, 4.0); /* twiddle factors */
    MPI_Alltoall(before, block, MPI_DOUBLE, after, block, MPI_DOUBLE, MPI_COMM_WORLD);
    compute(&here, half, data, BYTES_PER_FLOP);
    MPI_Alltoall(after, block, MPI_DOUBLE, before, block, MPI_DOUBLE, MPI_COMM_WORLD);
  }

  release(after);
  release(before);
  MPI_Finalize();
  return 0;
}
