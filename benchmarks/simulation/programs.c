/* Four applications for SMPI: master and slaves, a heat stencil, merge sort by divide and conquer, all-to-all.
 *
 *   programs NAME A B C
 *
 * The same as in applications/NAME.app, with its variables in the order in which they stand there. */
#include <math.h>
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static char* data;

static void put(int to, double bytes)
{
  MPI_Send(data, (int)bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

static void get(int from, double bytes)
{
  MPI_Recv(data, (int)bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void master_slave(double rounds, double operations, double bytes)
{
  for (int round = 0; round < rounds; round++) {
    if (rank == 0) {
      for (int slave = 1; slave < size; slave++)
        put(slave, bytes);
      for (int slave = 1; slave < size; slave++)
        get(slave, bytes);
    } else {
      get(0, bytes);
      smpi_execute_flops(operations);
      put(0, bytes);
    }
  }
}

static void stencil(double iterations, double operations, double bytes)
{
  for (int iteration = 0; iteration < iterations; iteration++) {
    MPI_Request requests[4];
    int pending = 0;
    smpi_execute_flops(operations / size);
    for (int side = -1; side <= 1; side += 2)
      if (rank + side >= 0 && rank + side < size) {
        MPI_Irecv(data, (int)bytes, MPI_BYTE, rank + side, 0, MPI_COMM_WORLD, &requests[pending++]);
        MPI_Isend(data, (int)bytes, MPI_BYTE, rank + side, 0, MPI_COMM_WORLD, &requests[pending++]);
      }
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
  }
}

static void merge_sort(double items, double compare, double merge)
{
  int mask = 1;
  while (mask < size && rank % (2 * mask) == 0)
    mask *= 2;
  if (rank > 0)
    get(rank - mask, 8.0 * items * mask / size);
  int half = mask;
  while (half > 1) {
    half /= 2;
    put(rank + half, 8.0 * items * half / size);
  }
  smpi_execute_flops(compare * items / size * log2(items / size));
  while (half < mask) {
    get(rank + half, 8.0 * items * half / size);
    smpi_execute_flops(2.0 * merge * items * half / size);
    half *= 2;
  }
  if (rank > 0)
    put(rank - mask, 8.0 * items * mask / size);
}

static void all_to_all(double iterations, double operations, double bytes)
{
  const int part = (int)(bytes / size / size);
  char* others   = SMPI_SHARED_MALLOC((size_t)part * size);
  for (int iteration = 0; iteration < iterations; iteration++) {
    smpi_execute_flops(operations / size);
    MPI_Alltoall(data, part, MPI_BYTE, others, part, MPI_BYTE, MPI_COMM_WORLD);
  }
  SMPI_SHARED_FREE(others);
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double a = atof(argv[2]), b = atof(argv[3]), c = atof(argv[4]);
  /* Nobody reads what is sent: all processes share one copy of it. */
  data = SMPI_SHARED_MALLOC((size_t)(!strcmp(argv[1], "merge-sort") ? 4.0 * a : c) + 1);
  if (!strcmp(argv[1], "master-slave"))
    master_slave(a, b, c);
  if (!strcmp(argv[1], "stencil"))
    stencil(a, b, c);
  if (!strcmp(argv[1], "merge-sort"))
    merge_sort(a, b, c);
  if (!strcmp(argv[1], "all-to-all"))
    all_to_all(a, b, c);
  SMPI_SHARED_FREE(data);
  MPI_Finalize();
  return 0;
}
