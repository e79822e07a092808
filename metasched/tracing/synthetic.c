// The synthetic signature: runs the phases of a scaled application on few processes, and measures messages in them.
//
//   mpirun -np CORES synthetic PLAN
//
// PLAN (from metasched signature run) holds numbers only. Process 0 reads it for all and prints what was measured.
// Processes 0 .. m-1 are measurable: they take on ranges of the application's processes, one pair of ranges after the
// other. Process m+i is the black hole of process i: it stands for all partners outside the ranges. Before each post to
// it a control message says what to post there. A second one goes from a black hole to the noise processes, the last
// two, when a phase begins: they exchange as many messages as the processes outside have under way.
//
// What is measured is repeated until two runs agree. Computations keep messages apart: what all processes compute takes
// no longer than the longest message of the phase so far; by what some compute more than others, they sleep as long as they would
// compute.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__) && !defined(SMPI_SHARED_MALLOC)
#include <sys/prctl.h>
#endif

enum { SLEEP, SEND, RECEIVE, WAIT, TOGETHER, PHASE, END, WORDS = 6 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN };
enum { PINGS = 20, MOST_RUNS = 5, FEW = 4, PHASES = 64, MOST_REQUESTS = 1 << 24 };

static int rank, cores, measurable, noisy;
static double offset; // of this process's clock from that of process 0
static double longest[PHASES]; // message of each phase that was seen (s); the last stands for those behind it
static double rendezvous;      // bytes from which on a send waits for its receiver
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

// Whether two times agree, so that no further run is needed.
static int agree(double one, double other)
{
  const double difference = one < other ? other - one : one - other;
  return difference <= 0.02 * (one > other ? one : other);
}

// The plan: what is the same for all processes, then the part of each measurable one.
static Number* numbers;
static size_t at, known;

static Number next(void)
{
  if (at >= known)
    fail("the plan ends early");
  return numbers[at++];
}

static Number* whole;
static size_t placed, written;

static Number* taken(size_t* size)
{
  if (placed >= written || whole[placed] < 0 || (size_t)whole[placed] > written - placed - 1)
    fail("the plan ends early");
  *size        = (size_t)whole[placed];
  Number* part = whole + placed + 1;
  placed += *size + 1;
  return part;
}

static void read_plan(const char* path)
{
  Number size = -1;
  if (rank == 0) {
    FILE* file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0) {
      written = (size_t)ftell(file) / sizeof *whole;
      rewind(file);
      whole = memory(written * sizeof *whole);
      if (fread(whole, sizeof *whole, written, file) == written) {
        numbers = taken(&known);
        size    = (Number)known;
      }
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
  MPI_Bcast(numbers, (int)known, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
}

// The actions of this process, for all pairs of ranges.
static void read_part(void)
{
  Number size = 0;
  if (rank == 0) {
    Number* own = taken(&known);
    for (int other = 1; other < measurable; other++) {
      size_t many;
      Number* part = taken(&many);
      size         = (Number)many;
      MPI_Send(&size, 1, MPI_LONG_LONG, other, 5, control);
      MPI_Send(part, (int)many, MPI_LONG_LONG, other, 6, control);
    }
    numbers = own;
  } else if (rank < measurable) {
    MPI_Recv(&size, 1, MPI_LONG_LONG, 0, 5, control, MPI_STATUS_IGNORE);
    known   = (size_t)size;
    numbers = memory(known * sizeof *numbers);
    MPI_Recv(numbers, (int)known, MPI_LONG_LONG, 0, 6, control, MPI_STATUS_IGNORE);
  }
  at = 0;
}

// Clocks of different nodes begin at different times: half way through the fastest of some round trips. Each process
// asks the one below it in a binomial tree, which knows its own offset already.
static void set_clock(void)
{
  char name[MPI_MAX_PROCESSOR_NAME] = {0}, other[MPI_MAX_PROCESSOR_NAME] = {0};
  int length;
  MPI_Get_processor_name(name, &length);
  char* names = memory(rank ? 1 : (size_t)cores * sizeof name);
  MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, control);
  for (int one = 0; rank == 0 && one < cores; one++)
    printf("host %d %s\n", one, names + (size_t)one * sizeof name);
  free(names);
  for (int bit = 1; bit < cores; bit *= 2) {
    if (rank >= 2 * bit || (rank < bit && rank + bit >= cores))
      continue;
    const int asks = rank >= bit, peer = asks ? rank - bit : rank + bit;
    MPI_Sendrecv(name, sizeof name, MPI_CHAR, peer, 1, other, sizeof other, MPI_CHAR, peer, 1, control, MPI_STATUS_IGNORE);
    double least = 1e30, theirs = offset, found = 0;
    if (strcmp(name, other) == 0) {
      // One clock for both.
      if (asks)
        MPI_Recv(&found, 1, MPI_DOUBLE, peer, 2, control, MPI_STATUS_IGNORE);
      else
        MPI_Send(&theirs, 1, MPI_DOUBLE, peer, 2, control);
    } else {
      for (int ping = 0; ping < PINGS; ping++) {
        const double before = MPI_Wtime();
        if (asks) {
          MPI_Send(&theirs, 1, MPI_DOUBLE, peer, 2, control);
          MPI_Recv(&theirs, 1, MPI_DOUBLE, peer, 2, control, MPI_STATUS_IGNORE);
          const double after = MPI_Wtime();
          if (after - before < least) {
            least = after - before;
            found = (before + after) / 2 - theirs;
          }
        } else {
          MPI_Recv(&theirs, 1, MPI_DOUBLE, peer, 2, control, MPI_STATUS_IGNORE);
          theirs = now();
          MPI_Send(&theirs, 1, MPI_DOUBLE, peer, 2, control);
        }
      }
    }
    if (asks)
      offset = found;
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

static void sleep_for(Number nanoseconds)
{
  const struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&time, NULL);
}

// Collective operations on growing numbers of processes: from when the last one enters (the root of a broadcast or
// scatter) to when the last one leaves (the root of a gather or reduction).
static void measure_collectives(void)
{
  const Number many = next();
  MPI_Comm comm     = MPI_COMM_NULL;
  for (Number each = 0, before = 0; each < many; each++) {
    const Number kind = next(), size = next(), processes = next();
    if (processes != before) {
      if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
      MPI_Comm_split(everybody, rank < processes ? 0 : MPI_UNDEFINED, rank, &comm);
      before = processes;
    }
    if (comm == MPI_COMM_NULL)
      continue;
    double took[MOST_RUNS];
    int runs = 0, first = 1;
    while (runs < MOST_RUNS) {
      double times[2], last[2];
      const int from_root = kind == BCAST || kind == SCATTER;
      const double before_barrier = now();
      MPI_Barrier(comm);
      // Others leave a barrier later than the root by at most what it took: the root waits until all are ready.
      const double barrier = now() - before_barrier;
      if (from_root && rank == 0)
        sleep_for((Number)(1e9 * (barrier < 1e-3 ? barrier : 1e-3)));
      times[0] = from_root && rank ? -1e30 : now();
      collective(kind, size, comm);
      times[1] = rank && (kind == REDUCE || kind == GATHER) ? -1e30 : now();
      MPI_Allreduce(times, last, 2, MPI_DOUBLE, MPI_MAX, comm);
      took[runs++] = last[1] - last[0];
      if (runs > 1 && agree(took[runs - 2], took[runs - 1])) {
        first = runs - 2;
        break;
      }
    }
    for (int run = first; rank == 0 && run < runs; run++)
      printf("collective %lld %lld %lld %.12g\n", kind, size, processes, took[run]);
  }
  if (comm != MPI_COMM_NULL)
    MPI_Comm_free(&comm);
}

static void tell(int to, Number what, Number tag, Number size)
{
  const Number words[] = {what, tag, size};
  MPI_Send(words, 3, MPI_LONG_LONG, to, 0, control);
}

// A request of a measurable process, and when it was posted, waited for, and complete.
typedef struct {
  Number id;
  double phase, size, sends, posted, waited, done;
} Event;

static int by_message(const void* one, const void* other)
{
  const Event *a = one, *b = other;
  return a->id != b->id ? (a->id < b->id ? -1 : 1) : (int)(b->sends - a->sends);
}

// A message takes from when both ends are ready until it is complete. That is seen where the receiver waits from before
// it leaves; elsewhere it takes at most until the receiver has tested for it.
static void tell_messages(Event* events, size_t many, int shown)
{
  qsort(events, many, sizeof *events, by_message);
  for (size_t i = 0; i + 1 < many; i++) {
    const Event sent = events[i], got = events[i + 1];
    if (sent.id != got.id || !sent.sends || got.sends)
      continue;
    const double leaves = got.size >= rendezvous && got.posted > sent.posted ? got.posted : sent.posted;
    const double took   = got.done > leaves ? got.done - leaves : 0;
    const int seen      = got.waited <= leaves;
    double* most        = &longest[got.phase < PHASES ? (int)got.phase : PHASES - 1];
    if (seen && took > *most)
      *most = took;
    if (shown)
      printf("%s %lld %.12g\n", seen ? "seen" : "most", got.id, took);
  }
}

static void run_measurable(const Number* actions, Number many, int shown, MPI_Comm comm)
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
      case SLEEP: {
        // Nothing is under way after the longest message.
        const Number enough = (Number)(1e9 * longest[one[5] < PHASES ? one[5] : PHASES - 1]);
        sleep_for((one[1] < enough ? one[1] : enough) + one[2]);
        break;
      }
      case SEND:
      case RECEIVE: {
        const int sends = one[0] == SEND, peer = (int)one[1], bytes = (int)one[3];
        if (peer == hole)
          tell(hole, one[0], one[2], one[3]);
        events[made] = (Event){one[4], (double)one[5], bytes, sends, now(), 0, 0};
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
      case TOGETHER: MPI_Barrier(comm); break;
      case PHASE: tell(hole, PHASE, one[1], one[2]); break;
      default: fail("the plan holds an action that is not known");
    }
  }
  // Turns that were left out may have held the waits for some.
  MPI_Waitall((int)made, requests, MPI_STATUSES_IGNORE);
  tell(hole, END, 0, 0);
  // Measured events go to process 0.
  size_t kept = 0;
  for (size_t j = 0; j < made; j++)
    if (events[j].id >= 0 && (events[j].sends || events[j].done > 0))
      events[kept++] = events[j];
  int own = (int)(kept * sizeof *events), sum = 0;
  int *sizes = memory((size_t)measurable * sizeof *sizes), *places = memory((size_t)measurable * sizeof *places);
  MPI_Gather(&own, 1, MPI_INT, sizes, 1, MPI_INT, 0, comm);
  for (int other = 0; rank == 0 && other < measurable; sum += sizes[other++])
    places[other] = sum;
  Event* all = memory((size_t)sum);
  MPI_Gatherv(events, own, MPI_BYTE, all, sizes, places, MPI_BYTE, 0, comm);
  tell_messages(all, (size_t)sum / sizeof *all, shown);
  free(all);
  free(sizes);
  free(places);
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
    if (size == room && (room > MOST_REQUESTS || !(requests = realloc(requests, (room *= 2) * sizeof *requests))))
      fail("not enough memory");
    if (words[0] == SEND)
      MPI_Irecv(in, (int)words[2], MPI_BYTE, partner, (int)words[1], MPI_COMM_WORLD, &requests[size++]);
    else
      MPI_Isend(out, (int)words[2], MPI_BYTE, partner, (int)words[1], MPI_COMM_WORLD, &requests[size++]);
  }
  MPI_Waitall((int)size, requests, MPI_STATUSES_IGNORE);
  free(requests);
}

// Two processes with messages that nobody measures, a few at a time: what is left when the measurable ones are done, or
// begin another phase, is not made up for. Nothing is tested for, since simulators let tests take long.
static void run_noise(void)
{
  const int first = 2 * measurable, other = rank == first ? first + 1 : first;
  Number words[3] = {PHASE, 0, 0}, control_words[3];
  MPI_Request requests[1 + 2 * FEW];
  MPI_Irecv(control_words, 3, MPI_LONG_LONG, rank == first ? MPI_ANY_SOURCE : first, 0, control, &requests[0]);
  while (words[0] != END) {
    const int many = (int)(words[1] < FEW ? words[1] : FEW), bytes = (int)words[2];
    if (rank == first && many)
      tell(other, PHASE, many, bytes);
    for (int i = 1; i <= many; i++) {
      MPI_Irecv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[i]);
      MPI_Isend(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[many + i]);
    }
    words[1] -= many;
    for (int left = 2 * many; left > 0 || (words[1] == 0 && words[0] != END);) {
      int which;
      MPI_Waitany(1 + 2 * many, requests, &which, MPI_STATUS_IGNORE);
      if (which > 0) {
        left--;
        continue;
      }
      memcpy(words, control_words, sizeof words);
      if (words[0] == END)
        words[1] = 0;
      else
        MPI_Irecv(control_words, 3, MPI_LONG_LONG, rank == first ? MPI_ANY_SOURCE : first, 0, control, &requests[0]);
    }
  }
  if (rank == first)
    tell(other, END, 0, 0);
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
    /* No MPI_Abort: after it, the launcher of Open MPI 4.1 sometimes does not end. */
    MPI_Finalize();
    return rank == 0 ? 2 : 0;
  }
  measurable = (int)next();
  rendezvous = (double)next();
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
  read_part();
  for (Number iteration = 0; iteration < iterations; iteration++) {
    Number many = 0;
    if (rank < measurable) {
      many = next();
      if (many < 0 || (size_t)many > (known - at) / WORDS)
        fail("the plan ends early");
    }
    // Step 0 warms up and tells how long messages take; it is not measured.
    double before = 0;
    for (int run = iteration ? 0 : -1; run < MOST_RUNS; run++) {
      MPI_Barrier(everybody);
      const double since = MPI_Wtime();
      if (rank < measurable)
        run_measurable(numbers + at, many, run >= 0, own);
      else if (rank < 2 * measurable)
        run_black_hole();
      else if (noisy && rank < 2 * measurable + 2)
        run_noise();
      double took = MPI_Wtime() - since;
      MPI_Bcast(longest, PHASES, MPI_DOUBLE, 0, everybody);
      MPI_Bcast(&took, 1, MPI_DOUBLE, 0, everybody);
      if (rank == 0)
        printf("iteration %lld %.12g\n", iteration, took);
      if (run > 0 && agree(before, took))
        break;
      before = took;
    }
    at += (size_t)many * WORDS;
  }
  if (rank == 0)
    printf("end %.12g\n", MPI_Wtime() - begin);
  MPI_Finalize();
  return 0;
}
