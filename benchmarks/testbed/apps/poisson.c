/* Poisson's equation on an N x N grid by Jacobi's method, strips of rows: non-blocking exchange of the border rows under
 * the update of the interior, then the border rows, until a fixed number of iterations; the residual every tenth. */
#include "testbed.h"

enum { ITERATIONS = 400, RESIDUAL_EVERY = 10 };
static const double FLOPS_PER_POINT = 6.0, BYTES_PER_FLOP = 3.0;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here    = machine_here();
  const long n            = atol(argv[1]);
  const long rows         = share(n, rank, size);
  const double strip      = 2.0 * sizeof(double) * n * rows;
  const int neighbours[2] = {rank - 1, rank + 1};

  double* border = buffer(n * sizeof *border);
  double* ghost  = buffer(n * sizeof *ghost);

  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    MPI_Request requests[4];
    int pending = 0;
    for (int side = 0; side < 2; side++)
      if (neighbours[side] >= 0 && neighbours[side] < size) {
        MPI_Irecv(ghost, (int)n, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD, &requests[pending++]);
        MPI_Isend(border, (int)n, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD, &requests[pending++]);
      }
    const long edge = pending / 2; /* rows that wait for a neighbour */
    compute(&here, FLOPS_PER_POINT * n * (rows - edge), strip, BYTES_PER_FLOP);
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    compute(&here, FLOPS_PER_POINT * n * edge, strip, BYTES_PER_FLOP);
    if (iteration % RESIDUAL_EVERY == RESIDUAL_EVERY - 1) {
      double local = 1.0, global;
      MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
  }

  release(ghost);
  release(border);
  MPI_Finalize();
  return 0;
}
