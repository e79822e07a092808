/* All eigenvalues and eigenvectors of a dense symmetric matrix of order N in 2-D block cyclic distribution, in the three
 * steps of a two-stage solver: blocked Householder reduction, panel by panel (orthogonalise the panel within a process
 * column, spread it along rows and columns, multiply, add up, update the trailing matrix); implicit QL on the condensed
 * form, repeated by every process, its rotations applied to the rows of the eigenvectors each owns; transformation back. */
#include "testbed.h"

enum { BLOCK = 32 };

/* Rows (or columns) after index `first` that a place of a block cyclic axis holds. */
static long cyclic_share(long n, long first, int place, int places)
{
  long mine = 0;
  for (long block = first / BLOCK; block * BLOCK < n; block++)
    if (block % places == place)
      mine += n - block * BLOCK < BLOCK ? n - block * BLOCK : BLOCK;
  return mine;
}

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
  const long rows      = cyclic_share(n, 0, row, dims[0]);
  const long columns   = cyclic_share(n, 0, column, dims[1]);
  const double matrix  = 8.0 * rows * columns;
  double* panel        = buffer((rows + columns + 2 * BLOCK) * BLOCK * sizeof *panel);
  double* product      = buffer((rows + columns + 2 * BLOCK) * BLOCK * sizeof *product);
  double* square       = buffer(BLOCK * BLOCK * sizeof *square);
  double* factor       = buffer(BLOCK * BLOCK * sizeof *factor);

  for (long first = 0; first + BLOCK < n; first += BLOCK) {
    const long step  = first / BLOCK;
    const int owner  = (int)(step % dims[1]), turner = (int)(step % dims[0]);
    const long below = cyclic_share(n, first + BLOCK, row, dims[0]);
    const long right = cyclic_share(n, first + BLOCK, column, dims[1]);
    const int tall = (int)(below * BLOCK), wide = (int)(right * BLOCK);
    if (column == owner) { /* tall and skinny QR: local factors, then one reduction */
      compute(&here, 4.0 * below * BLOCK * BLOCK, 8.0 * tall, 0.3);
      MPI_Allreduce(square, factor, BLOCK * BLOCK, MPI_DOUBLE, MPI_SUM, along_column);
    }
    MPI_Bcast(panel, tall, MPI_DOUBLE, owner, along_row);
    MPI_Bcast(panel, wide, MPI_DOUBLE, turner, along_column);           /* its transpose */
    compute(&here, 2.0 * below * right * BLOCK, matrix, 0.25);          /* W = A V */
    MPI_Allreduce(panel, product, tall, MPI_DOUBLE, MPI_SUM, along_row);
    MPI_Bcast(product, wide, MPI_DOUBLE, turner, along_column);
    compute(&here, 2.0 * below * right * BLOCK, matrix, 0.25);          /* A -= V W' + W V', one triangle */
  }

  const double own = (double)n / size;
  compute(&here, 30.0 * n * n, 24.0 * n, 1.0);        /* QL, by every process */
  compute(&here, 6.0 * own * n * n, 8.0 * own * n, 0.25); /* its rotations */

  for (long first = 0; first + BLOCK < n; first += BLOCK) {
    const long below = cyclic_share(n, first, row, dims[0]);
    MPI_Bcast(panel, (int)(below * BLOCK), MPI_DOUBLE, (int)(first / BLOCK % dims[1]), along_row);
    compute(&here, 2.0 * below * columns * BLOCK, matrix, 0.25);
    MPI_Allreduce(panel, product, (int)(columns * BLOCK), MPI_DOUBLE, MPI_SUM, along_column);
    compute(&here, 2.0 * below * columns * BLOCK, matrix, 0.25);
  }

  release(factor);
  release(square);
  release(product);
  release(panel);
  MPI_Comm_free(&along_column);
  MPI_Comm_free(&along_row);
  MPI_Finalize();
  return 0;
}
