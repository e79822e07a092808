/* A dense matrix of order N, factorized with partial pivoting: columns in cyclic blocks; the owner of a block factorizes
 * its panel and broadcasts it, and everybody updates the columns to its right.  Then one solution, column by column. */
#include "testbed.h"

enum { BLOCK = 64 };

/* Columns at or behind `first` that process `rank` holds. */
static long behind(long n, long first, int rank, int size)
{
  long held = 0;
  for (long begin = (first / BLOCK) * BLOCK; begin < n; begin += BLOCK)
    if (begin >= first && begin / BLOCK % size == rank)
      held += begin + BLOCK < n ? BLOCK : n - begin;
  return held;
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  double* panel        = buffer(n * BLOCK * sizeof *panel);

  for (long first = 0; first < n; first += BLOCK) {
    const long width = first + BLOCK < n ? BLOCK : n - first, height = n - first;
    const int owner  = (int)(first / BLOCK % size);
    if (rank == owner)
      compute(&here, 1.0 * height * width * width, 8.0 * height * width, 1.0);
    MPI_Bcast(panel, (int)(height * width), MPI_DOUBLE, owner, MPI_COMM_WORLD);
    const long columns = behind(n, first + width, rank, size);
    compute(&here, 2.0 * (height - width) * width * columns, 8.0 * height * columns, 0.15);
  }
  for (long first = 0; first < n; first += BLOCK) {
    const int owner = (int)(first / BLOCK % size);
    if (rank == owner)
      compute(&here, 2.0 * (n - first) * BLOCK, 8.0 * (n - first) * BLOCK, 4.0);
    MPI_Bcast(panel, (int)(n - first), MPI_DOUBLE, owner, MPI_COMM_WORLD);
  }

  release(panel);
  MPI_Finalize();
  return 0;
}
