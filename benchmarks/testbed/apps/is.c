/* Integer sort of N keys, repeated: every process sorts its own keys, the histograms are added up to choose splitters,
 * the buckets travel by an all-to-all of uneven parts, and the sorted pieces received are merged. */
#include "testbed.h"

enum { SORTS = 12, BUCKETS = 1024 };
static const double OPERATIONS_PER_COMPARISON = 4.0, BYTES_PER_OPERATION = 0.4;

/* Keys that `from` holds for `to`: splitters taken from a histogram leave the buckets uneven by a few per cent. */
static int bucket(long n, int from, int to, int size)
{
  unsigned hash = (unsigned)from * 2654435761u ^ ((unsigned)to + 1u) * 2246822519u;
  hash ^= hash >> 15;
  return (int)((double)n / size / size * (0.96 + 0.08 * (hash % 1000u) / 999.0));
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const machine_t here = machine_here();
  const long n         = atol(argv[1]);

  int *give = malloc(size * sizeof *give), *give_at = malloc(size * sizeof *give_at);
  int *take = malloc(size * sizeof *take), *take_at = malloc(size * sizeof *take_at);
  long given = 0, taken = 0;
  for (int other = 0; other < size; other++) {
    give[other]    = bucket(n, rank, other, size);
    take[other]    = bucket(n, other, rank, size);
    give_at[other] = (int)given;
    take_at[other] = (int)taken;
    given += give[other];
    taken += take[other];
  }
  int* keys      = buffer(given * sizeof *keys);
  int* sorted    = buffer(taken * sizeof *sorted);
  int* histogram = calloc(BUCKETS, sizeof *histogram);
  int* total     = calloc(BUCKETS, sizeof *total);

  for (int sort = 0; sort < SORTS; sort++) {
    compute(&here, OPERATIONS_PER_COMPARISON * given * log2((double)given), 8.0 * given, BYTES_PER_OPERATION);
    MPI_Allreduce(histogram, total, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoallv(keys, give, give_at, MPI_INT, sorted, take, take_at, MPI_INT, MPI_COMM_WORLD);
    compute(&here, OPERATIONS_PER_COMPARISON * taken * log2((double)size), 8.0 * taken, 2.0);
  }

  free(total);
  free(histogram);
  release(sorted);
  release(keys);
  free(take_at);
  free(take);
  free(give_at);
  free(give);
  MPI_Finalize();
  return 0;
}
