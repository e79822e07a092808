// Broadcasts or reductions one after another: prints the seconds until the last process goes on.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, n;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  if (argc != 5)
    MPI_Abort(MPI_COMM_WORLD, 2);
  const int reduces = atoi(argv[1]), bytes = atoi(argv[2]), turns = atoi(argv[3]), step = atoi(argv[4]);
  char *one = malloc(bytes), *other = malloc(bytes);
  const double begin = MPI_Wtime();
  for (int turn = 0; turn < turns; turn++) {
    if (reduces)
      MPI_Reduce(one, other, bytes, MPI_BYTE, MPI_BOR, turn * step % n, MPI_COMM_WORLD);
    else
      MPI_Bcast(one, bytes, MPI_BYTE, turn * step % n, MPI_COMM_WORLD);
  }
  double took = MPI_Wtime() - begin, longest;
  MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%.9g\n", longest);
  MPI_Finalize();
  free(one);
  free(other);
  return 0;
}
