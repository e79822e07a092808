/* Symmetric successive over-relaxation on an N x N grid in red-black order, processes in a Cartesian topology: a forward
 * and a backward pass, each of a red and a black half sweep of the five-point stencil; every half sweep is followed by an
 * exchange with the four neighbours of the colour just updated. */
#include "testbed.h"

enum { ITERATIONS = 100, HALF_SWEEPS = 4, RESIDUAL_EVERY = 10 };
static const double FLOPS_PER_POINT = 8.0, BYTES_PER_FLOP = 2.5;

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2], rank;
  MPI_Comm cart;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  MPI_Cart_coords(cart, rank, 2, coords);

  const machine_t here = machine_here();
  const long n         = atol(argv[1]);
  const long extent[2] = {share(n, coords[0], dims[0]), share(n, coords[1], dims[1])};
  const double points  = (double)extent[0] * extent[1];
  const double block   = 2.0 * sizeof(double) * points; /* the unknowns and the right-hand side */

  double* edge  = buffer(n * sizeof *edge);
  double* ghost = buffer(n * sizeof *ghost);

  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    for (int sweep = 0; sweep < HALF_SWEEPS; sweep++) {
      compute(&here, FLOPS_PER_POINT * points / 2.0, block, BYTES_PER_FLOP);
      MPI_Request requests[8];
      int pending = 0;
      for (int axis = 0; axis < 2; axis++) {
        const int count = (int)((extent[1 - axis] + 1) / 2); /* every second point of the side has the colour */
        int neighbours[2];
        MPI_Cart_shift(cart, axis, 1, &neighbours[0], &neighbours[1]);
        for (int side = 0; side < 2; side++)
          if (neighbours[side] != MPI_PROC_NULL) {
            MPI_Irecv(ghost, count, MPI_DOUBLE, neighbours[side], axis, cart, &requests[pending++]);
            MPI_Isend(edge, count, MPI_DOUBLE, neighbours[side], axis, cart, &requests[pending++]);
          }
      }
      MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    }
    if (iteration % RESIDUAL_EVERY == RESIDUAL_EVERY - 1) {
      double local = 1.0, global;
      MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_MAX, cart);
    }
  }

  release(ghost);
  release(edge);
  MPI_Comm_free(&cart);
  MPI_Finalize();
  return 0;
}
