/* Conjugate gradient with a diagonal preconditioner on a dense symmetric positive definite matrix of order N, rows in
 * blocks: an allgather of the search direction, a matrix-vector product and two scalar products per iteration. */
#include "testbed.h"

enum { ITERATIONS = 200 };

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long rows      = share(n, rank, size);
  const double matrix  = 8.0 * n * rows;

  int* counts = malloc(size * sizeof *counts);
  int* starts = malloc(size * sizeof *starts);
  for (int i = 0, start = 0; i < size; start += counts[i++]) {
    counts[i] = (int)share(n, i, size);
    starts[i] = start;
  }
  double* mine      = buffer(rows * sizeof *mine);
  double* direction = buffer(n * sizeof *direction);

  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    double local = 1.0, global;
    MPI_Allgatherv(mine, (int)rows, MPI_DOUBLE, direction, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
    compute(&here, 2.0 * n * rows, matrix, 4.0);      /* q = A p */
    compute(&here, 2.0 * rows, 16.0 * rows, 8.0);     /* p.q */
    MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    compute(&here, 7.0 * rows, 48.0 * rows, 8.0);     /* x, r, z = r/diag(A), r.z */
    MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    compute(&here, 2.0 * rows, 16.0 * rows, 8.0);     /* p = z + beta p */
  }

  release(direction);
  release(mine);
  free(starts);
  free(counts);
  MPI_Finalize();
  return 0;
}
