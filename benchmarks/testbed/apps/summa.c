/* A matrix product of order N on a grid of processes (SUMMA): for every block of columns of A and of rows of B the owners
 * broadcast their parts along rows and columns of the grid, and everybody adds their product to its part of C. */
#include "testbed.h"

enum { BLOCK = 64 };

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size, dims[2] = {0, 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  const int row = rank / dims[1], column = rank % dims[1];
  MPI_Comm along_row, along_column;
  MPI_Comm_split(MPI_COMM_WORLD, row, column, &along_row);
  MPI_Comm_split(MPI_COMM_WORLD, column, row, &along_column);

  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long rows = share(n, row, dims[0]), columns = share(n, column, dims[1]);
  double* left         = buffer(rows * BLOCK * sizeof *left);
  double* upper        = buffer(columns * BLOCK * sizeof *upper);

  for (long first = 0; first < n; first += BLOCK) {
    const long width = first + BLOCK < n ? BLOCK : n - first;
    MPI_Bcast(left, (int)(rows * width), MPI_DOUBLE, (int)(first * dims[1] / n), along_row);
    MPI_Bcast(upper, (int)(columns * width), MPI_DOUBLE, (int)(first * dims[0] / n), along_column);
    compute(&here, 2.0 * rows * columns * width, 8.0 * rows * columns, 0.12);
  }

  release(upper);
  release(left);
  MPI_Comm_free(&along_column);
  MPI_Comm_free(&along_row);
  MPI_Finalize();
  return 0;
}
