/* All shortest paths of a graph of N vertices, by Floyd and Warshall in blocks: rows of the distance matrix in strips; for
 * every block of vertices its owner completes their rows and broadcasts them, and everybody updates its strip. */
#include "testbed.h"

enum { BLOCK = 16 };
static const double BYTES_PER_OPERATION = 0.5;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long rows      = share(n, rank, size);
  const double strip   = 8.0 * n * rows;
  double* through      = buffer(BLOCK * n * sizeof *through);

  for (long first = 0; first < n; first += BLOCK) {
    const long block = first + BLOCK < n ? BLOCK : n - first;
    const int owner  = (int)(first * size / n);
    if (rank == owner)
      compute(&here, 2.0 * block * block * n, 8.0 * block * n, BYTES_PER_OPERATION);
    MPI_Bcast(through, (int)(block * n), MPI_DOUBLE, owner, MPI_COMM_WORLD);
    compute(&here, 2.0 * block * n * rows, strip, BYTES_PER_OPERATION);
  }

  release(through);
  MPI_Finalize();
  return 0;
}
