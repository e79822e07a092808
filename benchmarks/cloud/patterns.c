/* MPI programs that differ in who talks to whom: the ground truth of the cloud predictor. Each repeats one iteration of
 * computation and communication, and rank 0 prints what a profiler would: means over the processes of sends, bytes in
 * a message, circular distance between the ranks of sender and receiver, seconds in MPI; how often the process that
 * does so most waits for messages; and seconds of the whole run.
 *
 * patterns NAME FLOPS BYTES ITERATIONS: FLOPS of one iteration over all processes, BYTES that set the message size.
 */
#include <math.h>
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SERIAL = 0.005, UNEVEN = 0.03;

typedef struct {
  int rank, size;
  double flops, bytes, sends, sent, distance, exchanges, waiting;
  MPI_Request pending[512];
  int count;
  void *out, *in;
} process_t;

static void compute(process_t* p, double part)
{
  unsigned hash = (unsigned)p->rank * 2654435761u + 12345u;
  hash ^= hash >> 13;
  double uneven = 1.0 + UNEVEN * ((hash % 1000u) / 999.0 - 0.5);
  smpi_execute_flops(part * p->flops * uneven);
}

static void note(process_t* p, int to, double bytes)
{
  int apart = abs(to - p->rank);
  p->sends += 1;
  p->sent += bytes;
  p->distance += apart < p->size - apart ? apart : p->size - apart;
}

static void give(process_t* p, int to, double bytes)
{
  note(p, to, bytes);
  MPI_Isend(p->out, (int)bytes, MPI_CHAR, to, 0, MPI_COMM_WORLD, &p->pending[p->count++]);
}

static void take(process_t* p, int from, double bytes)
{
  MPI_Irecv(p->in, (int)bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, &p->pending[p->count++]);
}

static void finish(process_t* p)
{
  p->exchanges += p->count > 0;
  MPI_Waitall(p->count, p->pending, MPI_STATUSES_IGNORE);
  p->count = 0;
}

static void ring(process_t* p)
{
  int left = (p->rank + p->size - 1) % p->size, right = (p->rank + 1) % p->size;
  take(p, left, p->bytes);
  take(p, right, p->bytes);
  give(p, left, p->bytes);
  give(p, right, p->bytes);
  finish(p);
}

static void grid(process_t* p)
{
  int dims[2] = {0, 0};
  MPI_Dims_create(p->size, 2, dims);
  int rows = dims[0], columns = dims[1], row = p->rank / columns, column = p->rank % columns;
  double bytes     = p->bytes / sqrt(p->size);
  int neighbour[4] = {((row + 1) % rows) * columns + column, ((row + rows - 1) % rows) * columns + column,
                      row * columns + (column + 1) % columns, row * columns + (column + columns - 1) % columns};
  for (int side = 0; side < 4; side++)
    if (neighbour[side] != p->rank)
      take(p, neighbour[side], bytes);
  for (int side = 0; side < 4; side++)
    if (neighbour[side] != p->rank)
      give(p, neighbour[side], bytes);
  finish(p);
}

static void alltoall(process_t* p)
{
  double bytes = p->bytes / p->size / p->size;
  for (int step = 1; step < p->size; step++)
    take(p, (p->rank + p->size - step) % p->size, bytes);
  for (int step = 1; step < p->size; step++)
    give(p, (p->rank + step) % p->size, bytes);
  finish(p);
}

static void butterfly(process_t* p)
{
  for (int bit = 1; bit < p->size; bit *= 2) {
    take(p, p->rank ^ bit, p->bytes);
    give(p, p->rank ^ bit, p->bytes);
    finish(p);
  }
}

static void tree(process_t* p)
{
  int bit = 1;
  for (; bit < p->size; bit *= 2) { /* up to rank 0 */
    if (p->rank & bit) {
      give(p, p->rank ^ bit, p->bytes);
      finish(p);
      break;
    }
    take(p, p->rank ^ bit, p->bytes);
    finish(p);
  }
  if (bit < p->size) { /* and back */
    take(p, p->rank ^ bit, p->bytes);
    finish(p);
  }
  for (bit /= 2; bit >= 1; bit /= 2) {
    give(p, p->rank | bit, p->bytes);
    finish(p);
  }
}

static void scattered(process_t* p)
{
  static const int STEPS[4] = {1, 3, 7, 13};
  for (int k = 0; k < 4; k++)
    if (STEPS[k] < p->size)
      take(p, (p->rank + p->size - STEPS[k]) % p->size, p->bytes / sqrt(p->size));
  for (int k = 0; k < 4; k++)
    if (STEPS[k] < p->size)
      give(p, (p->rank + STEPS[k]) % p->size, p->bytes / sqrt(p->size));
  finish(p);
}

static void pipeline(process_t* p)
{
  enum { BLOCKS = 32 };
  for (int block = 0; block < BLOCKS; block++) {
    double before = MPI_Wtime();
    if (p->rank > 0) {
      take(p, p->rank - 1, p->bytes / BLOCKS);
      finish(p);
    }
    p->waiting += MPI_Wtime() - before;
    compute(p, 1.0 / BLOCKS);
    before = MPI_Wtime();
    if (p->rank < p->size - 1) {
      give(p, p->rank + 1, p->bytes / BLOCKS);
      finish(p);
    }
    p->waiting += MPI_Wtime() - before;
  }
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  process_t p = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p.size);
  const char* name     = argv[1];
  const double all     = atof(argv[2]);
  const int iterations = atoi(argv[4]);
  p.flops              = all * (SERIAL + (1.0 - SERIAL) / p.size);
  p.bytes              = atof(argv[3]);
  p.out                = SMPI_SHARED_MALLOC((size_t)p.bytes + 1);
  p.in                 = SMPI_SHARED_MALLOC((size_t)p.bytes + 1);
  void (*exchange)(process_t*) = !strcmp(name, "ring")        ? ring
                                 : !strcmp(name, "grid")      ? grid
                                 : !strcmp(name, "alltoall")  ? alltoall
                                 : !strcmp(name, "butterfly") ? butterfly
                                 : !strcmp(name, "tree")      ? tree
                                 : !strcmp(name, "scattered") ? scattered
                                                              : NULL;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  if (!strcmp(name, "probe")) { /* what messages between pairs of processes take, there and back, halved */
    const int half = p.size / 2, other = (p.rank + half) % p.size;
    for (int turn = 0; turn < 2 * iterations; turn++)
      if ((p.rank < half) == (turn % 2 == 0))
        MPI_Send(p.out, (int)p.bytes, MPI_CHAR, other, 0, MPI_COMM_WORLD);
      else
        MPI_Recv(p.in, (int)p.bytes, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (p.rank == 0)
      printf("%.9g\n", (MPI_Wtime() - start) / (2 * iterations));
  } else {
    for (int iteration = 0; iteration < iterations; iteration++)
      if (exchange) {
        compute(&p, 1.0);
        const double before = MPI_Wtime();
        exchange(&p);
        p.waiting += MPI_Wtime() - before;
      } else {
        pipeline(&p);
      }
    double time = MPI_Wtime() - start, mine[4] = {p.sends, p.sent, p.distance, p.waiting}, sum[4];
    double most[2] = {p.exchanges, time}, longest[2];
    MPI_Reduce(mine, sum, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(most, longest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (p.rank == 0)
      printf("%.9g %.9g %.9g %.9g %.9g %.9g\n", sum[0] / p.size, sum[1] / sum[0], sum[2] / sum[0], sum[3] / p.size,
             longest[0], longest[1]);
  }
  SMPI_SHARED_FREE(p.in);
  SMPI_SHARED_FREE(p.out);
  MPI_Finalize();
  return 0;
}
