// The synthetic signature: runs the phases of a scaled application on few processes, and measures messages in them.
//
//   mpirun -np CORES synthetic PLAN
//
// PLAN (from metasched signature run) holds numbers only. Process 0 reads it for all and prints what was measured.
// Processes 0 .. m-1 are measurable: they take on ranges of the application's processes, one pair of ranges after the
// other. Process m+i is the black hole of process i: it stands for all partners outside the ranges. Before each post to
// it a control message says what to post there. A second one goes from a black hole to the noise processes, the last
// two, when a phase begins: they exchange as many messages as the processes outside have under way.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__) && !defined(SMPI_SHARED_MALLOC)
#include <sys/prctl.h>
#endif

enum { SLEEP, SEND, RECEIVE, WAIT, COLLECTIVE, PHASE, END, WORDS = 5 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN };
enum { PINGS = 20, REPEATS = 5, MOST_REQUESTS = 1 << 24 };

static int rank, cores, measurable, noisy;
static double offset; // of this process's clock from that of process 0
static char *out, *in;
static MPI_Comm control, everybody;

typedef long long Number;

static void fail(const char* why)
{
  fprintf(stderr, "synthetic: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

static void* memory(size_t size)
{
  void* found = calloc(size ? size : 1, 1);
  if (!found)
    fail("not enough memory");
  return found;
}

static double now(void)
{
  return MPI_Wtime() - offset;
}

// The plan, the same for all processes.
static Number* numbers;
static size_t at, known;

static Number next(void)
{
  if (at >= known)
    fail("the plan ends early");
  return numbers[at++];
}

static void read_plan(const char* path)
{
  Number size = -1;
  if (rank == 0) {
    FILE* file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0) {
      size = ftell(file) / (long)sizeof *numbers;
      rewind(file);
      numbers = memory((size_t)size * sizeof *numbers);
      if (fread(numbers, sizeof *numbers, (size_t)size, file) != (size_t)size)
        size = -1;
    }
    if (file)
      fclose(file);
  }
  MPI_Bcast(&size, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  if (size < 0)
    fail("the plan cannot be read by process 0: expected a folder that it shares");
  known = (size_t)size;
  if (rank)
    numbers = memory(known * sizeof *numbers);
  for (size_t done = 0; done < known;) {
    const size_t part = known - done < 1 << 20 ? known - done : 1 << 20;
    MPI_Bcast(numbers + done, (int)part, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    done += part;
  }
}

// Clocks of different nodes begin at different times: half way through the fastest of some round trips.
static void set_clock(void)
{
  char name[MPI_MAX_PROCESSOR_NAME] = {0}, first[MPI_MAX_PROCESSOR_NAME] = {0};
  int length;
  MPI_Get_processor_name(name, &length);
  memcpy(first, name, sizeof first);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank)
    MPI_Send(name, sizeof name, MPI_CHAR, 0, 1, control);
  else
    printf("host 0 %s\n", name);
  for (int other = 1; other < cores; other++) {
    double least = 1e30, theirs = 0;
    if (rank == 0) {
      MPI_Recv(first, sizeof first, MPI_CHAR, other, 1, control, MPI_STATUS_IGNORE);
      printf("host %d %s\n", other, first);
    }
    for (int ping = 0; ping < PINGS; ping++) {
      if (rank == 0) {
        MPI_Recv(&theirs, 1, MPI_DOUBLE, other, 2, control, MPI_STATUS_IGNORE);
        theirs = MPI_Wtime();
        MPI_Send(&theirs, 1, MPI_DOUBLE, other, 2, control);
      } else if (rank == other) {
        const double before = MPI_Wtime();
        MPI_Send(&theirs, 1, MPI_DOUBLE, 0, 2, control);
        MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, 2, control, MPI_STATUS_IGNORE);
        const double after = MPI_Wtime();
        if (after - before < least) {
          least  = after - before;
          offset = (before + after) / 2 - theirs;
        }
      }
    }
    if (rank == other && strcmp(first, name) == 0)
      offset = 0;
  }
}

static void collective(Number kind, Number size, MPI_Comm comm)
{
  const int many = (int)size;
  switch (kind) {
    case BARRIER: MPI_Barrier(comm); break;
    case BCAST: MPI_Bcast(out, many, MPI_BYTE, 0, comm); break;
    case REDUCE: MPI_Reduce(out, in, many, MPI_BYTE, MPI_BOR, 0, comm); break;
    case ALLREDUCE: MPI_Allreduce(out, in, many, MPI_BYTE, MPI_BOR, comm); break;
    case GATHER: MPI_Gather(out, many, MPI_BYTE, in, many, MPI_BYTE, 0, comm); break;
    case SCATTER: MPI_Scatter(out, many, MPI_BYTE, in, many, MPI_BYTE, 0, comm); break;
    case ALLGATHER: MPI_Allgather(out, many, MPI_BYTE, in, many, MPI_BYTE, comm); break;
    case ALLTOALL: MPI_Alltoall(out, many, MPI_BYTE, in, many, MPI_BYTE, comm); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(out, in, many, MPI_BYTE, MPI_BOR, comm); break;
    case SCAN: MPI_Scan(out, in, many, MPI_BYTE, MPI_BOR, comm); break;
    default: fail("the plan holds an operation that is not known");
  }
}

// Collective operations on growing numbers of processes: from when the last one enters (the root of a broadcast or
// scatter) to when the last one leaves (the root of a gather or reduction).
static void measure_collectives(void)
{
  const Number many = next();
  for (Number each = 0; each < many; each++) {
    const Number kind = next(), size = next(), processes = next();
    MPI_Comm comm;
    MPI_Comm_split(everybody, rank < processes ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm == MPI_COMM_NULL)
      continue;
    for (int repeat = 0; repeat <= REPEATS; repeat++) {
      double times[2], last[2];
      MPI_Barrier(comm);
      times[0] = rank && (kind == BCAST || kind == SCATTER) ? -1e30 : now();
      collective(kind, size, comm);
      times[1] = rank && (kind == REDUCE || kind == GATHER) ? -1e30 : now();
      MPI_Reduce(times, last, 2, MPI_DOUBLE, MPI_MAX, 0, comm);
      if (rank == 0 && repeat)
        printf("collective %lld %lld %lld %.12g\n", kind, size, processes, last[1] - last[0]);
    }
    MPI_Comm_free(&comm);
  }
}

static void tell(int to, Number what, Number tag, Number size)
{
  const Number words[] = {what, tag, size};
  MPI_Send(words, 3, MPI_LONG_LONG, to, 0, control);
}

static void sleep_for(Number nanoseconds)
{
  const struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&time, NULL);
}

// A request of a measurable process, and when it was posted, waited for, and complete.
typedef struct {
  Number id;
  int sends;
  double posted, waited, done;
} Event;

static void run_measurable(const Number* actions, Number many, int shown, Number iteration, MPI_Comm comm)
{
  size_t size = 0, made = 0;
  for (Number i = 0; i < many; i++)
    size += actions[i * WORDS] == SEND || actions[i * WORDS] == RECEIVE;
  Event* events         = memory(size * sizeof *events);
  MPI_Request* requests = memory(size * sizeof *requests);
  const int hole        = measurable + rank;
  for (Number i = 0; i < many; i++) {
    const Number* one = actions + i * WORDS;
    switch (one[0]) {
      case SLEEP: sleep_for(one[1]); break;
      case SEND:
      case RECEIVE: {
        const int sends = one[0] == SEND, peer = (int)one[1], bytes = (int)one[3];
        if (peer == hole)
          tell(hole, one[0], one[2], one[3]);
        events[made] = (Event){one[4], sends, now(), 0, 0};
        if (sends)
          MPI_Isend(out, bytes, MPI_BYTE, peer, (int)one[2], MPI_COMM_WORLD, &requests[made]);
        else
          MPI_Irecv(in, bytes, MPI_BYTE, peer, (int)one[2], MPI_COMM_WORLD, &requests[made]);
        made++;
        break;
      }
      case WAIT: {
        const size_t first = (size_t)one[1], end = (size_t)one[2];
        if (end > made)
          fail("the plan waits for what was not posted");
        const double begin = now();
        for (size_t j = first; j < end; j++)
          if (requests[j] != MPI_REQUEST_NULL)
            events[j].waited = begin;
        for (;;) {
          int which;
          MPI_Waitany((int)(end - first), requests + first, &which, MPI_STATUS_IGNORE);
          if (which == MPI_UNDEFINED)
            break;
          events[first + (size_t)which].done = now();
        }
        break;
      }
      case COLLECTIVE: collective(one[1], one[2], comm); break;
      case PHASE: tell(hole, PHASE, one[1], one[2]); break;
      default: fail("the plan holds an action that is not known");
    }
  }
  // Turns that were left out may have held the waits for some.
  MPI_Waitall((int)made, requests, MPI_STATUSES_IGNORE);
  tell(hole, END, 0, 0);
  // Measured events go to process 0, which prints them.
  size_t kept = 0;
  for (size_t j = 0; j < made; j++)
    if (events[j].id >= 0 && (events[j].sends || events[j].done > 0))
      events[kept++] = events[j];
  for (int other = 0; shown && other < measurable; other++) {
    Number there = (Number)kept;
    Event* theirs = events;
    if (other && rank == other) {
      MPI_Send(&there, 1, MPI_LONG_LONG, 0, 3, control);
      MPI_Send(events, (int)(kept * sizeof *events), MPI_BYTE, 0, 4, control);
    } else if (rank == 0) {
      if (other) {
        MPI_Recv(&there, 1, MPI_LONG_LONG, other, 3, control, MPI_STATUS_IGNORE);
        theirs = memory((size_t)there * sizeof *theirs);
        MPI_Recv(theirs, (int)((size_t)there * sizeof *theirs), MPI_BYTE, other, 4, control, MPI_STATUS_IGNORE);
      }
      for (Number j = 0; j < there; j++)
        if (theirs[j].sends)
          printf("sent %lld %lld %.12g\n", iteration, theirs[j].id, theirs[j].posted);
        else
          printf("got %lld %lld %.12g %.12g %.12g\n", iteration, theirs[j].id, theirs[j].posted, theirs[j].waited,
                 theirs[j].done);
      if (theirs != events)
        free(theirs);
    }
  }
  free(events);
  free(requests);
}

// All partners outside the ranges of one measurable process. Its messages hold nothing, so one buffer does for all.
static void run_black_hole(void)
{
  const int partner = rank - measurable;
  size_t size = 0, room = 64;
  MPI_Request* requests = memory(room * sizeof *requests);
  for (Number words[3];;) {
    MPI_Recv(words, 3, MPI_LONG_LONG, partner, 0, control, MPI_STATUS_IGNORE);
    if (words[0] == END || words[0] == PHASE) {
      if (noisy && (words[0] == PHASE || partner == 0))
        tell(2 * measurable, words[0], words[1], words[2]);
      if (words[0] == END)
        break;
      continue;
    }
    if (size == room) {
      int complete;
      MPI_Testall((int)size, requests, &complete, MPI_STATUSES_IGNORE);
      if (complete)
        size = 0;
      else if (room > MOST_REQUESTS || !(requests = realloc(requests, (room *= 2) * sizeof *requests)))
        fail("not enough memory");
    }
    if (words[0] == SEND)
      MPI_Irecv(in, (int)words[2], MPI_BYTE, partner, (int)words[1], MPI_COMM_WORLD, &requests[size++]);
    else
      MPI_Isend(out, (int)words[2], MPI_BYTE, partner, (int)words[1], MPI_COMM_WORLD, &requests[size++]);
  }
  MPI_Waitall((int)size, requests, MPI_STATUSES_IGNORE);
  free(requests);
}

// Two processes with messages that nobody measures. Phases that began meanwhile are not made up for.
static void run_noise(void)
{
  const int first = 2 * measurable, other = rank == first ? first + 1 : first;
  for (Number words[3] = {PHASE, 0, 0}; words[0] != END;) {
    MPI_Recv(words, 3, MPI_LONG_LONG, rank == first ? MPI_ANY_SOURCE : first, 0, control, MPI_STATUS_IGNORE);
    for (int more = rank == first; more && words[0] != END;) {
      MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &more, MPI_STATUS_IGNORE);
      if (more)
        MPI_Recv(words, 3, MPI_LONG_LONG, MPI_ANY_SOURCE, 0, control, MPI_STATUS_IGNORE);
    }
    if (rank == first)
      tell(other, words[0], words[1], words[2]);
    if (words[0] != END) {
      MPI_Request* requests = memory(2 * (size_t)words[1] * sizeof *requests);
      for (Number i = 0; i < words[1]; i++) {
        MPI_Irecv(in, (int)words[2], MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(out, (int)words[2], MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[2 * i + 1]);
      }
      MPI_Waitall(2 * (int)words[1], requests, MPI_STATUSES_IGNORE);
      free(requests);
    }
  }
}

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &cores);
#if defined(__linux__) && !defined(SMPI_SHARED_MALLOC)
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
#endif
  if (argc != 2)
    fail("expected the plan");
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  MPI_Comm_dup(MPI_COMM_WORLD, &everybody);
  const double begin = MPI_Wtime();
  read_plan(argv[1]);
  if (next() != cores) {
    if (rank == 0)
      fprintf(stderr, "synthetic: the launcher started %d processes, expected %lld (--cores)\n", cores, numbers[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  measurable = (int)next();
  noisy      = cores >= 2 * measurable + 2 && measurable > 0;
  const Number buffer = next(), iterations = next();
#ifdef SMPI_SHARED_MALLOC
  out = SMPI_SHARED_MALLOC((size_t)buffer);
  in  = SMPI_SHARED_MALLOC((size_t)buffer);
#else
  out = memory((size_t)buffer);
  in  = memory((size_t)buffer);
#endif
  set_clock();
  measure_collectives();
  MPI_Comm own;
  MPI_Comm_split(everybody, rank < measurable ? 0 : MPI_UNDEFINED, rank, &own);
  const size_t first = at;
  // Step 0 warms up: the first pair of ranges, not measured.
  for (Number iteration = -1; iteration < iterations; iteration++) {
    if (iteration <= 0)
      at = first;
    const Number* mine = NULL;
    Number many        = 0;
    for (int slot = 0; slot < measurable; slot++) {
      const Number size = next();
      if (size < 0 || (size_t)size > (known - at) / WORDS)
        fail("the plan ends early");
      if (slot == rank) {
        mine = numbers + at;
        many = size;
      }
      at += (size_t)size * WORDS;
    }
    MPI_Barrier(everybody);
    const double since = MPI_Wtime();
    if (rank < measurable)
      run_measurable(mine, many, iteration >= 0, iteration, own);
    else if (rank < 2 * measurable)
      run_black_hole();
    else if (noisy && rank < 2 * measurable + 2)
      run_noise();
    MPI_Barrier(everybody);
    if (rank == 0)
      printf("iteration %lld %.12g\n", iteration, MPI_Wtime() - since);
  }
  if (rank == 0)
    printf("end %.12g\n", MPI_Wtime() - begin);
  MPI_Finalize();
  return 0;
}
