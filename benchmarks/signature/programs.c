// MPI programs that predictions are judged with; the rules of metasched/signature were not designed on them.
//
//   programs NAME
//   programs relax counted|timed SHARE
//
// relax leaves its cache: of its work SHARE is done, told in instructions or in the time that they take.
//
// Each distributes one workload over any number of processes that it can run on. Computation is told to SMPI, not
// timed. Buffers are shared between processes: nobody reads them. No globals, so that processes may share the program.
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REQUESTS = 32, BUFFER = 1 << 24 };

typedef struct {
  int rank, n, counted;
  double part;
  char *out, *in;
  MPI_Request requests[MOST_REQUESTS];
  int pending;
} World;

static long share(long total, int place, int of)
{
  return total / of + (place < total % of);
}

static void later_to(World* w, int peer, int tag, long doubles)
{
  MPI_Isend(w->out, (int)doubles, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD, &w->requests[w->pending++]);
}

static void later_from(World* w, int peer, int tag, long doubles)
{
  MPI_Irecv(w->in, (int)doubles, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD, &w->requests[w->pending++]);
}

static void await(World* w)
{
  MPI_Waitall(w->pending, w->requests, MPI_STATUSES_IGNORE);
  w->pending = 0;
}

static void sum(World* w, int doubles)
{
  MPI_Allreduce(w->out, w->in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// Diagonal cells of a square of processes: faces to six neighbours, then sweeps along three directions, the last of
// which comes back.
static void partition(World* w)
{
  int side = 1;
  while (side * side < w->n)
    side++;
  const int x = w->rank / side, y = w->rank % side;
  const int right = x * side + (y + 1) % side, left = x * side + (y + side - 1) % side;
  const int down = (x + 1) % side * side + y, up = (x + side - 1) % side * side + y;
  const int ahead = (x + 1) % side * side + (y + side - 1) % side, behind = (x + side - 1) % side * side + (y + 1) % side;
  const int to[] = {right, down, ahead}, from[] = {left, up, behind};
  const long edge = 408 / side, face = edge * edge;
  MPI_Bcast(w->out, 7, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int step = 0; step < 2; step++) {
    const int all[] = {right, left, down, up, ahead, behind};
    for (int i = 0; i < 6; i++)
      later_from(w, all[i ^ 1], i, 5 * face);
    for (int i = 0; i < 6; i++)
      later_to(w, all[i], i, 5 * face);
    await(w);
    smpi_execute_flops(4e8 / w->n);
    for (int direction = 0; direction < 3; direction++)
      for (int stage = 0; stage < side; stage++) {
        smpi_execute_flops(8e8 / w->n / side);
        if (stage < side - 1) {
          later_from(w, from[direction], 10 + direction, 22 * face / 4);
          later_to(w, to[direction], 10 + direction, 22 * face / 4);
          await(w);
        }
      }
    for (int stage = 0; stage < side - 1; stage++) {
      later_from(w, to[2], 20, 5 * face);
      later_to(w, from[2], 20, 5 * face);
      await(w);
      smpi_execute_flops(2e8 / w->n / side);
    }
  }
  sum(w, 5);
}

// Sums along rows of a grid by exchange, a transposition, scalar products by exchange among all: n is a power of two.
static void gradient(World* w)
{
  int rows = 1;
  while (4 * rows * rows <= w->n)
    rows *= 2;
  const int columns = w->n / rows, row = w->rank / columns, column = w->rank % columns;
  const int twin = columns == rows ? column * rows + row : (w->rank / 2 % rows * rows + w->rank / 2 / rows) * 2 + w->rank % 2;
  for (int step = 0; step < 12; step++) {
    smpi_execute_flops(6e8 / w->n);
    for (int bit = 1; bit < columns; bit *= 2)
      MPI_Sendrecv(w->out, 90000 / rows, MPI_DOUBLE, row * columns + (column ^ bit), 3, w->in, 90000 / rows, MPI_DOUBLE,
                   row * columns + (column ^ bit), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    later_from(w, twin, 4, 90000 / columns); // on the diagonal, to itself
    MPI_Send(w->out, 90000 / columns, MPI_DOUBLE, twin, 4, MPI_COMM_WORLD);
    await(w);
    smpi_execute_flops(2e7 / w->n);
    for (int bit = 1; bit < w->n; bit *= 2) {
      later_from(w, w->rank ^ bit, 5, 1);
      MPI_Send(w->out, 1, MPI_DOUBLE, w->rank ^ bit, 5, MPI_COMM_WORLD);
      await(w);
    }
  }
}

// Two sweeps over planes of a grid, from one corner and back, as a factorization does; blocking messages.
static void lower(World* w)
{
  int sides[2] = {0, 0};
  MPI_Dims_create(w->n, 2, sides);
  const int x = w->rank / sides[1], y = w->rank % sides[1];
  for (int step = 0; step < 2; step++) {
    smpi_execute_flops(6e8 / w->n);
    for (int back = 0; back < 2; back++) {
      const int by = back ? -1 : 1;
      for (int plane = 0; plane < 20; plane++) {
        if (x - by >= 0 && x - by < sides[0])
          MPI_Recv(w->in, 5 * 576 / sides[1], MPI_DOUBLE, w->rank - by * sides[1], 30 + back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (y - by >= 0 && y - by < sides[1])
          MPI_Recv(w->in, 5 * 576 / sides[0], MPI_DOUBLE, w->rank - by, 30 + back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        smpi_execute_flops(6e7 / w->n);
        if (x + by >= 0 && x + by < sides[0])
          MPI_Send(w->out, 5 * 576 / sides[1], MPI_DOUBLE, w->rank + by * sides[1], 30 + back, MPI_COMM_WORLD);
        if (y + by >= 0 && y + by < sides[1])
          MPI_Send(w->out, 5 * 576 / sides[0], MPI_DOUBLE, w->rank + by, 30 + back, MPI_COMM_WORLD);
      }
    }
    sum(w, 5);
  }
}

// Eight sweeps from four corners, two each, angle by angle in blocks; sends without waiting.
static void sweep(World* w)
{
  int sides[2] = {0, 0};
  MPI_Dims_create(w->n, 2, sides);
  const int x = w->rank / sides[1], y = w->rank % sides[1];
  for (int step = 0; step < 2; step++) {
    for (int octant = 0; octant < 8; octant++) {
      const int dx = octant & 2 ? -1 : 1, dy = octant & 4 ? -1 : 1;
      for (int block = 0; block < 5; block++) {
        if (x - dx >= 0 && x - dx < sides[0])
          MPI_Recv(w->in, 9600 / sides[1], MPI_DOUBLE, w->rank - dx * sides[1], octant, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (y - dy >= 0 && y - dy < sides[1])
          MPI_Recv(w->in, 9600 / sides[0], MPI_DOUBLE, w->rank - dy, octant, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        smpi_execute_flops(1.5e8 / w->n);
        if (x + dx >= 0 && x + dx < sides[0])
          later_to(w, w->rank + dx * sides[1], octant, 9600 / sides[1]);
        if (y + dy >= 0 && y + dy < sides[1])
          later_to(w, w->rank + dy, octant, 9600 / sides[0]);
        if (w->pending)
          await(w);
      }
    }
    MPI_Reduce(w->out, w->in, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Bcast(w->out, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
}

// Bodies that travel half round a ring under the computation, and the forces sent home.
static void bodies(World* w)
{
  const long mine = 65536 / w->n;
  const int next = (w->rank + 1) % w->n, before = (w->rank + w->n - 1) % w->n, half = w->n / 2;
  for (int stage = 0; stage < half; stage++) {
    later_from(w, before, 6, 4 * mine);
    later_to(w, next, 6, 4 * mine);
    smpi_execute_flops(1.6e10 / w->n / w->n);
    await(w);
  }
  MPI_Sendrecv(w->out, 3 * (int)mine, MPI_DOUBLE, (w->rank + half) % w->n, 7, w->in, 3 * (int)mine, MPI_DOUBLE,
               (w->rank + w->n - half) % w->n, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  smpi_execute_flops(2e8 / w->n);
  MPI_Allreduce(w->out, w->in, 6, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// A plate with borders: four edges, then four corners, and how far it is from its end after each step.
static void plate(World* w)
{
  int sides[2] = {0, 0};
  MPI_Dims_create(w->n, 2, sides);
  const int x = w->rank / sides[1], y = w->rank % sides[1];
  const long height = share(6144, x, sides[0]), width = share(4608, y, sides[1]);
  for (int step = 0; step < 15; step++) {
    for (int send = 0; send < 2; send++)
      for (int dx = -1; dx <= 1; dx++)
        for (int dy = -1; dy <= 1; dy++)
          if ((dx || dy) && x + dx >= 0 && x + dx < sides[0] && y + dy >= 0 && y + dy < sides[1]) {
            const int peer    = w->rank + dx * sides[1] + dy;
            const long points = dx && dy ? 1 : dx ? width : height;
            if (send)
              later_to(w, peer, 8, points);
            else
              later_from(w, peer, 8, points);
          }
    smpi_execute_flops(9.0 * height * width);
    await(w);
    if (step % 3 == 2)
      sum(w, 1);
  }
}

// A periodic box in three dimensions: faces one direction after the other.
static void box(World* w)
{
  int sides[3] = {0, 0, 0};
  MPI_Dims_create(w->n, 3, sides);
  const int at[3]     = {w->rank / (sides[1] * sides[2]), w->rank / sides[2] % sides[1], w->rank % sides[2]};
  const int strides[] = {sides[1] * sides[2], sides[2], 1};
  const long cells[]  = {384 / sides[0], 384 / sides[1], 384 / sides[2]};
  for (int step = 0; step < 12; step++) {
    for (int d = 0; d < 3; d++) {
      const long face = 2 * (cells[0] * cells[1] * cells[2] / cells[d]);
      for (int way = -1; way <= 1; way += 2) {
        const int to   = w->rank + ((at[d] + way + sides[d]) % sides[d] - at[d]) * strides[d];
        const int from = w->rank + ((at[d] - way + sides[d]) % sides[d] - at[d]) * strides[d];
        MPI_Sendrecv(w->out, (int)face, MPI_DOUBLE, to, 40 + d, w->in, (int)face, MPI_DOUBLE, from, 40 + d,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    smpi_execute_flops(6e8 / w->n);
    if (step % 4 == 3)
      sum(w, 2);
  }
}

// Fast Fourier transforms: everybody to everybody in the middle.
static void spectral(World* w)
{
  const int each = (int)((1L << 23) / w->n / w->n);
  for (int step = 0; step < 2; step++) {
    smpi_execute_flops(1.2e9 / w->n);
    MPI_Alltoall(w->out, each, MPI_DOUBLE, w->in, each, MPI_DOUBLE, MPI_COMM_WORLD);
    smpi_execute_flops(6e8 / w->n);
    sum(w, 1);
  }
}

// Panels from owners in turn, to all; what is left to do shrinks.
static void panels(World* w)
{
  for (int panel = 0; panel < 64; panel++) {
    MPI_Bcast(w->out, 48 * (64 - panel), MPI_DOUBLE, panel % w->n, MPI_COMM_WORLD);
    smpi_execute_flops(1.5e5 * (64 - panel) * (64 - panel) / w->n);
  }
  for (int panel = 63; panel >= 0; panel--) {
    smpi_execute_flops(6e6 / w->n);
    MPI_Bcast(w->out, 48, MPI_DOUBLE, panel % w->n, MPI_COMM_WORLD);
  }
}

// Nanoseconds of an instruction by the bytes that a process works on, from beyond its cache (0.92) to within (0.53), as
// the cycles of an instruction in Table 6 of the paper.
static double pace(double bytes)
{
  const double cache = 1.0e6, ratio = bytes / cache;
  return 0.53 + 0.39 * ratio * ratio * ratio / (1.0 + ratio * ratio * ratio);
}

// Points in a row of processes, relaxed by their neighbours, in two kinds of steps.
static void relax(World* w)
{
  const double points = w->part * 3.2e7 / w->n;
  const int next = (w->rank + 1) % w->n, before = (w->rank + w->n - 1) % w->n;
  for (int step = 0; step < 12; step++) {
    for (int turn = 0; turn < 3; turn++) {
      smpi_execute_flops(25 * points * (w->counted ? 1.0 : pace(8 * points)));
      MPI_Sendrecv(w->out, 500, MPI_DOUBLE, next, 1, w->in, 500, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    smpi_execute_flops(6 * points * (w->counted ? 1.0 : pace(4 * points)));
    sum(w, 1);
  }
}

int main(int argc, char** argv)
{
  static const struct {
    const char* name;
    void (*run)(World*);
  } programs[] = {{"partition", partition}, {"gradient", gradient}, {"lower", lower},
                  {"sweep", sweep},         {"bodies", bodies},     {"plate", plate},
                  {"box", box},             {"spectral", spectral}, {"panels", panels},
                  {"relax", relax}};
  MPI_Init(&argc, &argv);
  World world = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.n);
  world.out  = SMPI_SHARED_MALLOC(BUFFER);
  world.in   = SMPI_SHARED_MALLOC(BUFFER);
  world.counted = argc == 4 && strcmp(argv[2], "counted") == 0;
  world.part    = argc == 4 ? atof(argv[3]) : 1.0;
  int status    = 2;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (argc >= 2 && strcmp(programs[i].name, argv[1]) == 0) {
      programs[i].run(&world);
      status = 0;
    }
  SMPI_SHARED_FREE(world.out);
  SMPI_SHARED_FREE(world.in);
  MPI_Finalize();
  return status;
}
