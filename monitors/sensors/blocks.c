/* Times the blocks of an application: messages, collective operations, computation, a file.
 *
 *   blocks REPETITIONS FILE SIZE...
 *
 * One process a node.  The answer is CSV on standard output, a line for each repetition of each block with each size (bytes):
 * block,value,data_size,nodes,threads,instructions, value in seconds.  Collective operations begin together, by a
 * barrier that is timed apart, and end when the last process has ended.  FILE, where it is not -, is written and read by
 * process 0. A first line, "hosts", has the number of hosts instead of seconds. Computation is timed with 1 thread in each process; instructions are those of the loop as compiled, about 4 each.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, nodes;

static void tell(const char* block, double value, long size)
{
  double last;
  MPI_Reduce(&value, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s,%.9e,%ld,%d,1,\n", block, last, size, nodes);
}

/* From one process to another: half of the way there and back. */
static void point_to_point(char* data, long size)
{
  if (nodes < 2)
    return;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (rank == 0) {
    MPI_Send(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  if (rank == 0)
    printf("p2p,%.9e,%ld,2,1,\n", (MPI_Wtime() - begin) / 2, size);
}

static void collective(const char* block, char* data, char* other, long size)
{
  const long part = (size + nodes - 1) / nodes;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (!strcmp(block, "bcast"))
    MPI_Bcast(data, size, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(block, "scatter"))
    MPI_Scatter(data, part, MPI_BYTE, other, part, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(block, "gather"))
    MPI_Gather(data, part, MPI_BYTE, other, part, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(block, "alltoall"))
    MPI_Alltoall(data, size, MPI_BYTE, other, size, MPI_BYTE, MPI_COMM_WORLD);
  else
    MPI_Barrier(MPI_COMM_WORLD);
  const double value = MPI_Wtime() - begin;
  tell(block, value, !strcmp(block, "scatter") || !strcmp(block, "gather") ? part * nodes : size);
}

static volatile double sink;

static void compute(long turns)
{
  double a = 1.0, b = 1e-9;
  const double begin = MPI_Wtime();
  for (long turn = 0; turn < turns; turn++)
    a = a * 0.999999 + b;
  sink = a;
  if (rank == 0)
    printf("compute,%.9e,,1,1,%ld\n", MPI_Wtime() - begin, 4 * turns);
}

static int failed(const char* name)
{
  fprintf(stderr, "%s: %s\n", name, strerror(errno));
  return 1;
}

/* Whether it failed, which it says. */
static int file(const char* name, char* data, long size)
{
  FILE* stream = fopen(name, "wbx"); /* never one that is there already */
  if (stream == NULL)
    return failed(name);
  double begin     = MPI_Wtime();
  const int enough = fwrite(data, 1, size, stream) == (size_t)size;
  if (fclose(stream) || !enough) {
    failed(name);
    remove(name);
    return 1;
  }
  printf("write,%.9e,%ld,1,1,\n", MPI_Wtime() - begin, size);
  stream = fopen(name, "rb");
  begin  = MPI_Wtime();
  if (stream == NULL)
    return failed(name);
  if (fread(data, 1, size, stream) != (size_t)size) {
    failed(name);
    fclose(stream);
    remove(name);
    return 1;
  }
  printf("read,%.9e,%ld,1,1,\n", MPI_Wtime() - begin, size);
  fclose(stream);
  remove(name);
  return 0;
}

/* On how many hosts the processes are. */
static void hosts(void)
{
  char own[MPI_MAX_PROCESSOR_NAME] = "";
  int length, found = 0;
  MPI_Get_processor_name(own, &length);
  char* all = calloc(nodes, sizeof own);
  if (all == NULL) {
    fprintf(stderr, "not enough memory for the names of %d hosts\n", nodes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Gather(own, sizeof own, MPI_CHAR, all, sizeof own, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int each = 0; each < nodes; each++) {
    int before = 0;
    while (before < each && strcmp(all + before * sizeof own, all + each * sizeof own))
      before++;
    found += before == each;
  }
  if (rank == 0)
    printf("hosts,%.9e,,%d,,\n", (double)found, nodes);
  free(all);
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nodes);
  if (argc < 4) {
    fprintf(stderr, "usage: blocks REPETITIONS FILE SIZE...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int repetitions = atoi(argv[1]);
  const char* sized[]   = {"bcast", "scatter", "gather"};
  long most             = 0;
  for (int each = 3; each < argc; each++)
    most = atol(argv[each]) > most ? atol(argv[each]) : most;
  char* data  = calloc(most + nodes, 1);
  char* other = calloc(most + nodes, 1);
  if (data == NULL || other == NULL) {
    fprintf(stderr, "not enough memory for messages of %ld bytes\n", most);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  hosts();
  for (int repetition = 0; repetition < repetitions; repetition++) {
    collective("barrier", data, other, 0);
    for (int argument = 3; argument < argc; argument++) {
      const long size = atol(argv[argument]);
      point_to_point(data, size);
      for (int each = 0; each < 3; each++)
        collective(sized[each], data, other, size);
      if (size * nodes <= most)
        collective("alltoall", data, other, size);
      if (!strcmp(argv[2], "-"))
        continue;
      /* No MPI_Abort: after it, the launcher of Open MPI 4.1 sometimes does not end. */
      int unable = rank == 0 && file(argv[2], data, size);
      MPI_Bcast(&unable, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (unable) {
        MPI_Finalize();
        return rank == 0;
      }
    }
    for (long turns = 1L << 16; turns <= 1L << 20; turns *= 2)
      compute(turns);
  }
  free(data);
  free(other);
  MPI_Finalize();
  return 0;
}
