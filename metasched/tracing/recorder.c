// Records what one process does through MPI, with its computation between calls: preloaded into programs in C and Fortran.
//
//   METASCHED_TRACE=DIR METASCHED_INSTRUCTIONS=auto LD_PRELOAD=recorder.so mpirun -np 16 ./app
//
// Each call becomes an action in the notation of SimGrid's time-independent traces (ranks of the world, bytes). Different
// actions are numbered, and the sequence of numbers is folded into loops while it grows: a loop of a million turns is
// one node. Between two actions only how often and how long in total is kept. The file DIR/rank-N is written at the
// end, when the program aborts, and from time to time, each time whole, so that a killed program leaves one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "instruction_counter.h"

enum { LONGEST_PERIOD = 128, MOST_NODES = 1 << 22, NULL_RANK = -333, BYTES = -1, FRESH = 10000 /* ns */ };

// A growing array of 64-bit words.
typedef struct {
  int64_t* at;
  size_t size, room;
} Words;

static void push(Words* words, int64_t word)
{
  if (words->size == words->room) {
    words->room = words->room ? 2 * words->room : 64;
    words->at   = realloc(words->at, words->room * sizeof *words->at);
    if (!words->at)
      abort();
  }
  words->at[words->size++] = word;
}

// From keys of words to numbers: open addressing over keys kept one after another.
typedef struct {
  Words keys, starts, slots;
} Table;

static uint64_t hashed(const int64_t* key, size_t size)
{
  uint64_t hash = 1469598103934665603ull;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ (uint64_t)key[i]) * 1099511628211ull, hash ^= hash >> 29;
  return hash;
}

static size_t key_size(const Table* table, size_t number)
{
  const size_t end = number + 1 < table->starts.size ? (size_t)table->starts.at[number + 1] : table->keys.size;
  return end - (size_t)table->starts.at[number];
}

static void place(Table* table, size_t number)
{
  const int64_t* key = table->keys.at + table->starts.at[number];
  size_t slot        = hashed(key, key_size(table, number)) & (table->slots.size - 1);
  while (table->slots.at[slot] >= 0)
    slot = (slot + 1) & (table->slots.size - 1);
  table->slots.at[slot] = (int64_t)number;
}

static int64_t numbered(Table* table, const int64_t* key, size_t size)
{
  if (2 * table->starts.size >= table->slots.size) {
    const size_t room = table->slots.size ? 2 * table->slots.size : 256;
    table->slots.size = 0;
    for (size_t i = 0; i < room; i++)
      push(&table->slots, -1);
    for (size_t number = 0; number < table->starts.size; number++)
      place(table, number);
  }
  size_t slot = hashed(key, size) & (table->slots.size - 1);
  for (int64_t number; (number = table->slots.at[slot]) >= 0; slot = (slot + 1) & (table->slots.size - 1))
    if (key_size(table, (size_t)number) == size &&
        memcmp(table->keys.at + table->starts.at[number], key, size * sizeof *key) == 0)
      return number;
  push(&table->starts, (int64_t)table->keys.size);
  for (size_t i = 0; i < size; i++)
    push(&table->keys, key[i]);
  table->slots.at[slot] = (int64_t)table->starts.size - 1;
  return table->slots.at[slot];
}

static const char* const NAMES[] = {
    "init",      "finalize",  "send",    "isend",      "ssend",    "issend",    "bsend",    "rsend",  "recv",
    "irecv",     "sendRecv",  "wait",    "waitall",    "barrier",  "bcast",     "reduce",   "allreduce", "gather",
    "gatherv",   "scatter",   "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "reducescatter", "scan",
    "exscan"};
enum Name {
  INIT, FINALIZE, SEND, ISEND, SSEND, ISSEND, BSEND, RSEND, RECV, IRECV, SENDRECV, WAIT, WAITALL, BARRIER, BCAST,
  REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, REDUCESCATTER,
  SCAN, EXSCAN
};

static Table actions, bodies, betweens;
static Words nodes, counts, totals, executed; // of the program; of betweens: how often, nanoseconds, instructions
static int rank = -1, processes, whole;
static int64_t last = -1, begun, wall, written, write_cost;
static char folder[4096];

// What a process computes: processor time (ns), and instructions if they are counted.
typedef struct {
  int64_t time, instructions;
} Work;
static Work left; // when the last call ended
#define NOTHING ((Work){0, 0})

static int64_t now(clockid_t clock)
{
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// The processor time of this thread. Asking the kernel for it costs more than the rest of a call, so for some
// microseconds it is taken to go on as the clock on the wall does.
static int64_t processor_time(void)
{
  static int64_t asked_at, answer;
  wall = now(CLOCK_MONOTONIC);
  if (asked_at == 0 || wall - asked_at > FRESH) {
    answer   = now(CLOCK_THREAD_CPUTIME_ID);
    asked_at = wall;
  }
  return answer + (wall - asked_at);
}

// A node is an action, or a loop: its body's number in the high half, how often in the low one, below zero.
static int64_t loop(int64_t body, int64_t count)
{
  return -((body << 32 | count) + 1);
}
static int64_t body_of(int64_t node)
{
  return -(node + 1) >> 32;
}
static int64_t count_of(int64_t node)
{
  return -(node + 1) & 0xffffffff;
}

// Fold the end of the program as far as it goes: one more turn of a loop, or two equal stretches in a row.
static void fold(void)
{
  for (int again = 1; again;) {
    again               = 0;
    const int64_t* end  = nodes.at + nodes.size;
    const size_t most   = nodes.size < LONGEST_PERIOD ? nodes.size : LONGEST_PERIOD;
    for (size_t period = 1; period <= most && !again; period++) {
      if (nodes.size > period && end[-(long)period - 1] < 0) {
        const int64_t node = end[-(long)period - 1], body = body_of(node);
        if (key_size(&bodies, (size_t)body) == period && count_of(node) < 0xfffffffe &&
            memcmp(bodies.keys.at + bodies.starts.at[body], end - period, period * sizeof *end) == 0) {
          nodes.size -= period;
          nodes.at[nodes.size - 1] = loop(body, count_of(node) + 1);
          again                    = 1;
          continue;
        }
      }
      if (nodes.size >= 2 * period && end[-1] == end[-1 - (long)period] &&
          memcmp(end - period, end - 2 * period, period * sizeof *end) == 0) {
        const int64_t body = numbered(&bodies, end - period, period);
        nodes.size -= 2 * period;
        push(&nodes, loop(body, 2));
        again = 1;
      }
    }
  }
}

static void write_all(const char* how)
{
  char path[4200], part[4200];
  snprintf(path, sizeof path, "%s/rank-%d", folder, rank);
  snprintf(part, sizeof part, "%s/.rank-%d.part", folder, rank);
  FILE* file = fopen(part, "w");
  if (!file)
    return;
  const char* counted = counted_by();
  fprintf(file, "metasched-trace 1\nprocess %d %d\ninstructions %s\nduration %.9f\n", rank, processes, counted,
          1e-9 * (double)(now(CLOCK_MONOTONIC) - begun));
  for (size_t i = 0; i < actions.starts.size; i++) {
    const int64_t* key = actions.keys.at + actions.starts.at[i];
    fprintf(file, "a %s", NAMES[key[0]]);
    // What is among some of the processes only is no collective operation of all.
    if (key[1] > 0)
      fprintf(file, "_on %lld", (long long)key[1]);
    for (size_t j = 2; j < key_size(&actions, i); j++)
      fprintf(file, " %lld", (long long)key[j]);
    fputc('\n', file);
  }
  for (size_t i = 0; i < betweens.starts.size; i++) {
    const int64_t* key = betweens.keys.at + betweens.starts.at[i];
    fprintf(file, "t %lld %lld %lld %lld", (long long)key[0], (long long)key[1], (long long)counts.at[i],
            (long long)totals.at[i]);
    if (strcmp(counted, "time") != 0)
      fprintf(file, " %lld", (long long)executed.at[i]);
    fputc('\n', file);
  }
  for (size_t i = 0; i <= bodies.starts.size; i++) {
    const int last_one = i == bodies.starts.size;
    const int64_t* at  = last_one ? nodes.at : bodies.keys.at + bodies.starts.at[i];
    const size_t size  = last_one ? nodes.size : key_size(&bodies, i);
    fputs(last_one ? "p" : "b", file);
    for (size_t j = 0; j < size; j++)
      if (at[j] < 0)
        fprintf(file, " %lldx%lld", (long long)body_of(at[j]), (long long)count_of(at[j]));
      else
        fprintf(file, " %lld", (long long)at[j]);
    fputc('\n', file);
  }
  fprintf(file, "%s\n", how);
  if (fclose(file) == 0)
    rename(part, path);
  else
    unlink(part);
}

// Begins a call: what was computed since the last one.
static Work entered(void)
{
  if (rank < 0)
    return NOTHING;
  const int64_t instructions = count_at_begin() - left.instructions;
  return (Work){processor_time() - left.time, instructions};
}

// Ends a call; what no action has taken up of the computation before it is the next one's.
static void ended_owing(Work owing)
{
  if (rank < 0)
    return;
  left.time         = processor_time() - owing.time;
  left.instructions = count_at_end() - owing.instructions;
}

static void ended(void)
{
  ended_owing(NOTHING);
}

static void add(const int64_t* key, size_t size, Work computed)
{
  if (rank < 0 || nodes.size >= MOST_NODES)
    return;
  const int64_t action = numbered(&actions, key, size);
  const int64_t pair[] = {last, action};
  const int64_t between = numbered(&betweens, pair, 2);
  while (counts.size <= (size_t)between) {
    push(&counts, 0);
    push(&totals, 0);
    push(&executed, 0);
  }
  counts.at[between]++;
  totals.at[between] += computed.time > 0 ? computed.time : 0;
  executed.at[between] += computed.instructions > 0 ? computed.instructions : 0;
  last = action;
  push(&nodes, action);
  fold();
  // A write once a second, and at most a twentieth of the time.
  if (wall - written > 1000000000 && wall - written > 20 * write_cost) {
    const int64_t before = now(CLOCK_MONOTONIC);
    write_all("cut");
    written    = now(CLOCK_MONOTONIC);
    write_cost = written - before;
  }
}
#define ADD(computed, ...)                                                                                             \
  do {                                                                                                                 \
    const int64_t key_[] = {__VA_ARGS__};                                                                              \
    add(key_, sizeof key_ / sizeof *key_, computed);                                                                   \
    computed = NOTHING;                                                                                                \
  } while (0)

// Communicators: ranks of the world, and a number of their own, the same for all members since it is of the members.
typedef struct {
  MPI_Comm comm;
  int* world;
  int64_t number;
} Communicator;
static Communicator* communicators;
static size_t communicators_size;

static const Communicator* communicator(MPI_Comm comm)
{
  for (size_t i = 0; i < communicators_size; i++)
    if (communicators[i].comm == comm)
      return &communicators[i];
  int inter = 0, size;
  MPI_Group group, world;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter)
    PMPI_Comm_remote_group(comm, &group);
  else
    PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_size(group, &size);
  int* own  = malloc((size_t)size * sizeof *own);
  int* them = malloc((size_t)size * sizeof *them);
  for (int i = 0; i < size; i++)
    own[i] = i;
  PMPI_Group_translate_ranks(group, size, own, world, them);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  free(own);
  communicators = realloc(communicators, (communicators_size + 1) * sizeof *communicators);
  communicators[communicators_size++] = (Communicator){comm, them, size == processes ? 0 : size};
  return &communicators[communicators_size - 1];
}

static int64_t world_rank(MPI_Comm comm, int peer)
{
  if (peer == MPI_PROC_NULL || peer == MPI_ANY_SOURCE)
    return NULL_RANK;
  return comm == MPI_COMM_WORLD ? peer : communicator(comm)->world[peer];
}

static int64_t among(MPI_Comm comm)
{
  return comm == MPI_COMM_WORLD ? 0 : communicator(comm)->number;
}

static int64_t bytes(int64_t count, MPI_Datatype type)
{
  int size = 0;
  if (type != MPI_DATATYPE_NULL)
    PMPI_Type_size(type, &size);
  return count * size;
}

// Requests that have not been waited for.
typedef struct {
  MPI_Request request;
  int64_t source, target, tag, size;
  int persistent; // 1 a send, 2 a receive, not started when asked for
} Asked;
static Asked* asked;
static size_t asked_size, asked_room;

static void remember(MPI_Request request, int64_t source, int64_t target, int64_t tag, int64_t size, int persistent)
{
  if (asked_size == asked_room) {
    asked_room = asked_room ? 2 * asked_room : 64;
    asked      = realloc(asked, asked_room * sizeof *asked);
  }
  asked[asked_size++] = (Asked){request, source, target, tag, size, persistent};
}

static Asked* find(MPI_Request request)
{
  for (size_t i = asked_size; i-- > 0;)
    if (asked[i].request == request)
      return &asked[i];
  return NULL;
}

static void forget(MPI_Request request)
{
  Asked* found = find(request);
  if (found && !found->persistent)
    *found = asked[--asked_size];
}

static void waited(MPI_Request request, Work* computed)
{
  const Asked* found = find(request);
  if (found && found->tag >= 0)
    ADD(*computed, WAIT, 0, found->source, found->target, found->tag);
  forget(request);
}

// Ends the run before it has begun, and leaves the reason.
static void refuse(const char* why)
{
  char path[4200];
  snprintf(path, sizeof path, "%s/refused", folder);
  FILE* file = fopen(path, "w");
  if (file) {
    fprintf(file, "instructions cannot be counted: %s\n", why);
    fclose(file);
  }
  PMPI_Abort(MPI_COMM_WORLD, 2);
}

static void start(int was_initialized)
{
  if (was_initialized != MPI_SUCCESS || !getenv("METASCHED_TRACE"))
    return;
  snprintf(folder, sizeof folder, "%s", getenv("METASCHED_TRACE"));
  PMPI_Comm_size(MPI_COMM_WORLD, &processes);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* why = start_counter(folder);
  if (why)
    refuse(why);
  begun = written = now(CLOCK_MONOTONIC);
  Work computed   = NOTHING;
  ADD(computed, INIT, 0);
  ended();
}

int MPI_Init(int* argc, char*** argv)
{
  const int status = PMPI_Init(argc, argv);
  start(status);
  return status;
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided)
{
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  start(status);
  return status;
}
int MPI_Finalize(void)
{
  Work computed = entered();
  ADD(computed, FINALIZE, 0);
  if (rank >= 0)
    write_all("end");
  whole = 1;
  rank  = -1;
  return PMPI_Finalize();
}
int MPI_Abort(MPI_Comm comm, int code)
{
  if (rank >= 0)
    write_all("cut");
  return PMPI_Abort(comm, code);
}
__attribute__((destructor)) static void leave(void)
{
  if (rank >= 0 && !whole)
    write_all("cut");
}

#define CALLED(call, ...)                                                                                              \
  Work computed = entered();                                                                                           \
  __VA_ARGS__;                                                                                                         \
  const int status = call;                                                                                             \
  ended();                                                                                                             \
  return status

#define SENDING(function, name)                                                                                        \
  int MPI_##function(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)                 \
  {                                                                                                                    \
    CALLED(PMPI_##function(data, count, type, peer, tag, comm),                                                        \
           ADD(computed, name, 0, world_rank(comm, peer), tag, bytes(count, type), BYTES));                            \
  }
SENDING(Send, SEND)
SENDING(Ssend, SSEND)
SENDING(Bsend, BSEND)
SENDING(Rsend, RSEND)

#define POSTING(function, name)                                                                                        \
  int MPI_##function(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                 \
                     MPI_Request* request)                                                                             \
  {                                                                                                                    \
    Work computed = entered();                                                                                         \
    const int64_t to = world_rank(comm, peer);                                                                         \
    ADD(computed, name, 0, to, tag, bytes(count, type), BYTES);                                                        \
    const int status = PMPI_##function(data, count, type, peer, tag, comm, request);                                   \
    if (rank >= 0 && to >= 0)                                                                                          \
      remember(*request, rank, to, tag, 0, 0);                                                                         \
    ended();                                                                                                           \
    return status;                                                                                                     \
  }
POSTING(Isend, ISEND)
POSTING(Issend, ISSEND)

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* result)
{
  Work computed = entered();
  MPI_Status own;
  const int status = PMPI_Recv(data, count, type, peer, tag, comm, &own);
  if (status == MPI_SUCCESS && rank >= 0) {
    const int from = peer == MPI_ANY_SOURCE ? own.MPI_SOURCE : peer;
    int got        = 0;
    PMPI_Get_count(&own, MPI_BYTE, &got);
    ADD(computed, RECV, 0, world_rank(comm, from), tag == MPI_ANY_TAG ? own.MPI_TAG : tag,
        got == MPI_UNDEFINED || peer == MPI_PROC_NULL ? bytes(count, type) : got, BYTES);
  }
  if (result != MPI_STATUS_IGNORE)
    *result = own;
  ended();
  return status;
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
{
  Work computed = entered();
  const int64_t from = world_rank(comm, peer);
  ADD(computed, IRECV, 0, from, tag, bytes(count, type), BYTES);
  const int status = PMPI_Irecv(data, count, type, peer, tag, comm, request);
  if (rank >= 0 && from >= 0)
    remember(*request, from, rank, tag, 0, 0);
  ended();
  return status;
}
int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* result)
{
  CALLED(PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, result),
         ADD(computed, SENDRECV, 0, bytes(out_count, out_type), world_rank(comm, to), bytes(in_count, in_type),
             world_rank(comm, from), BYTES, BYTES));
}
int MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                         MPI_Comm comm, MPI_Status* result)
{
  CALLED(PMPI_Sendrecv_replace(data, count, type, to, out_tag, from, in_tag, comm, result),
         ADD(computed, SENDRECV, 0, bytes(count, type), world_rank(comm, to), bytes(count, type),
             world_rank(comm, from), BYTES, BYTES));
}

int MPI_Wait(MPI_Request* request, MPI_Status* result)
{
  CALLED(PMPI_Wait(request, result), waited(*request, &computed));
}
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
  Work computed = entered();
  int64_t known = 0;
  for (int i = 0; i < count; i++) {
    known += find(requests[i]) != NULL;
    forget(requests[i]);
  }
  if (known)
    ADD(computed, WAITALL, 0, known);
  const int status = PMPI_Waitall(count, requests, statuses);
  ended();
  return status;
}
// Which of several requests has ended is known behind the call only.
#define WAITED_FOR(call, complete, indices)                                                                            \
  Work computed = entered();                                                                                           \
  MPI_Request* ahead = malloc((size_t)(count ? count : 1) * sizeof *ahead);                                            \
  memcpy(ahead, requests, (size_t)count * sizeof *ahead);                                                              \
  const int status = call;                                                                                             \
  if (status == MPI_SUCCESS)                                                                                           \
    for (int i = 0; i < (complete); i++)                                                                               \
      if ((indices) >= 0)                                                                                              \
        waited(ahead[indices], &computed);                                                                             \
  free(ahead);                                                                                                         \
  ended_owing(computed);                                                                                               \
  return status

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* result)
{
  WAITED_FOR(PMPI_Waitany(count, requests, index, result), *index != MPI_UNDEFINED, *index);
}
int MPI_Waitsome(int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[])
{
  WAITED_FOR(PMPI_Waitsome(count, requests, many, indices, statuses), *many == MPI_UNDEFINED ? 0 : *many, indices[i]);
}
int MPI_Test(MPI_Request* requests, int* flag, MPI_Status* result)
{
  const int count = 1;
  WAITED_FOR(PMPI_Test(requests, flag, result), *flag != 0, 0);
}
int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[])
{
  WAITED_FOR(PMPI_Testall(count, requests, flag, statuses), *flag ? count : 0, i);
}
int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* result)
{
  WAITED_FOR(PMPI_Testany(count, requests, index, flag, result), *flag && *index != MPI_UNDEFINED, *index);
}
int MPI_Testsome(int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[])
{
  WAITED_FOR(PMPI_Testsome(count, requests, many, indices, statuses), *many == MPI_UNDEFINED ? 0 : *many, indices[i]);
}

int MPI_Send_init(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                  MPI_Request* request)
{
  const int status = PMPI_Send_init(data, count, type, peer, tag, comm, request);
  if (rank >= 0)
    remember(*request, rank, world_rank(comm, peer), tag, bytes(count, type), 1);
  return status;
}
int MPI_Recv_init(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
{
  const int status = PMPI_Recv_init(data, count, type, peer, tag, comm, request);
  if (rank >= 0)
    remember(*request, world_rank(comm, peer), rank, tag, bytes(count, type), 2);
  return status;
}
static void started(MPI_Request request, Work* computed)
{
  const Asked* found = find(request);
  if (found && found->persistent == 1)
    ADD(*computed, ISEND, 0, found->target, found->tag, found->size, BYTES);
  else if (found)
    ADD(*computed, IRECV, 0, found->source, found->tag, found->size, BYTES);
}
int MPI_Start(MPI_Request* request)
{
  CALLED(PMPI_Start(request), started(*request, &computed));
}
int MPI_Startall(int count, MPI_Request requests[])
{
  CALLED(PMPI_Startall(count, requests), for (int i = 0; i < count; i++) started(requests[i], &computed));
}
int MPI_Request_free(MPI_Request* request)
{
  Asked* found = find(*request);
  if (found)
    *found = asked[--asked_size];
  return PMPI_Request_free(request);
}

int MPI_Barrier(MPI_Comm comm)
{
  CALLED(PMPI_Barrier(comm), ADD(computed, BARRIER, among(comm)));
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
  CALLED(PMPI_Bcast(data, count, type, root, comm),
         ADD(computed, BCAST, among(comm), bytes(count, type), world_rank(comm, root), BYTES));
}
int MPI_Reduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
  CALLED(PMPI_Reduce(out, in, count, type, op, root, comm),
         ADD(computed, REDUCE, among(comm), bytes(count, type), 0, world_rank(comm, root), BYTES));
}
int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
  CALLED(PMPI_Allreduce(out, in, count, type, op, comm),
         ADD(computed, ALLREDUCE, among(comm), bytes(count, type), 0, BYTES));
}
int MPI_Scan(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
  CALLED(PMPI_Scan(out, in, count, type, op, comm), ADD(computed, SCAN, among(comm), bytes(count, type), 0, BYTES));
}
int MPI_Exscan(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
  CALLED(PMPI_Exscan(out, in, count, type, op, comm), ADD(computed, EXSCAN, among(comm), bytes(count, type), 0, BYTES));
}

#define TO_ROOT(function, name)                                                                                        \
  int MPI_##function(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,                    \
                     MPI_Datatype in_type, int root, MPI_Comm comm)                                                    \
  {                                                                                                                    \
    int own;                                                                                                           \
    PMPI_Comm_rank(comm, &own);                                                                                        \
    const int64_t sent = name == GATHER ? bytes(out_count, out_type) : own == root ? bytes(out_count, out_type) : 0;   \
    const int64_t got  = name == SCATTER ? bytes(in_count, in_type) : own == root ? bytes(in_count, in_type) : 0;      \
    CALLED(PMPI_##function(out, out_count, out_type, in, in_count, in_type, root, comm),                               \
           ADD(computed, name, among(comm), sent, got, world_rank(comm, root), BYTES, BYTES));                         \
  }
TO_ROOT(Gather, GATHER)
TO_ROOT(Scatter, SCATTER)

#define TO_ALL(function, name)                                                                                         \
  int MPI_##function(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,                    \
                     MPI_Datatype in_type, MPI_Comm comm)                                                              \
  {                                                                                                                    \
    CALLED(PMPI_##function(out, out_count, out_type, in, in_count, in_type, comm),                                     \
           ADD(computed, name, among(comm), bytes(in_count, in_type), bytes(in_count, in_type), BYTES, BYTES));        \
  }
TO_ALL(Allgather, ALLGATHER)
TO_ALL(Alltoall, ALLTOALL)

// Actions with lists as long as the communicator.
static void add_list(Work computed, int64_t name, MPI_Comm comm, const Words* numbers)
{
  Words key = {0};
  push(&key, name);
  push(&key, among(comm));
  for (size_t i = 0; i < numbers->size; i++)
    push(&key, numbers->at[i]);
  add(key.at, key.size, computed);
  free(key.at);
  free(numbers->at);
}

// The bytes for each process; none where a process need not know them.
static int64_t push_counts(Words* words, const int counts_[], MPI_Datatype type, MPI_Comm comm, int known)
{
  int size;
  int64_t sum = 0;
  PMPI_Comm_size(comm, &size);
  for (int i = 0; i < size; i++) {
    const int64_t each = known ? bytes(counts_[i], type) : 0;
    push(words, each);
    sum += each;
  }
  return sum;
}

static void push_rest(Words* words, int64_t types)
{
  for (int64_t i = 0; i < types; i++)
    push(words, BYTES);
}

int MPI_Alltoallv(const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in,
                  const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm)
{
  const Work computed = entered();
  Words key = {0}, received = {0};
  push(&key, 0);
  key.at[0] = push_counts(&key, out_counts, out_type, comm, 1);
  push(&key, push_counts(&received, in_counts, in_type, comm, 1));
  for (size_t i = 0; i < received.size; i++)
    push(&key, received.at[i]);
  free(received.at);
  push_rest(&key, 2);
  add_list(computed, ALLTOALLV, comm, &key);
  const int status = PMPI_Alltoallv(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm);
  ended();
  return status;
}
int MPI_Allgatherv(const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[],
                   const int in_at[], MPI_Datatype in_type, MPI_Comm comm)
{
  const Work computed = entered();
  Words key              = {0};
  int own;
  PMPI_Comm_rank(comm, &own);
  push(&key, bytes(in_counts[own], in_type));
  push_counts(&key, in_counts, in_type, comm, 1);
  push_rest(&key, 2);
  add_list(computed, ALLGATHERV, comm, &key);
  const int status = PMPI_Allgatherv(out, out_count, out_type, in, in_counts, in_at, in_type, comm);
  ended();
  return status;
}
int MPI_Gatherv(const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[],
                const int in_at[], MPI_Datatype in_type, int root, MPI_Comm comm)
{
  const Work computed = entered();
  Words key              = {0};
  int own;
  PMPI_Comm_rank(comm, &own);
  push(&key, own == root ? bytes(in_counts[own], in_type) : bytes(out_count, out_type));
  push_counts(&key, in_counts, in_type, comm, own == root);
  push(&key, world_rank(comm, root));
  push_rest(&key, 2);
  add_list(computed, GATHERV, comm, &key);
  const int status = PMPI_Gatherv(out, out_count, out_type, in, in_counts, in_at, in_type, root, comm);
  ended();
  return status;
}
int MPI_Scatterv(const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in,
                 int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
  const Work computed = entered();
  Words key              = {0};
  int own;
  PMPI_Comm_rank(comm, &own);
  push_counts(&key, out_counts, out_type, comm, own == root);
  push(&key, own == root ? bytes(out_counts[own], out_type) : bytes(in_count, in_type));
  push(&key, world_rank(comm, root));
  push_rest(&key, 2);
  add_list(computed, SCATTERV, comm, &key);
  const int status = PMPI_Scatterv(out, out_counts, out_at, out_type, in, in_count, in_type, root, comm);
  ended();
  return status;
}
int MPI_Reduce_scatter(const void* out, void* in, const int in_counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
  const Work computed = entered();
  Words key              = {0};
  push_counts(&key, in_counts, type, comm, 1);
  push(&key, 0);
  push_rest(&key, 1);
  add_list(computed, REDUCESCATTER, comm, &key);
  const int status = PMPI_Reduce_scatter(out, in, in_counts, type, op, comm);
  ended();
  return status;
}

// Open MPI's bindings for Fortran (mpif.h, mpi, mpi_f08) end in a library that calls PMPI_* of C, past the functions
// above. What that library calls is passed on to them; whatever else calls PMPI_* gets the true ones. MPICH's bindings
// call MPI_* themselves.
#ifdef OPEN_MPI
#include <link.h>

static uintptr_t bindings, bindings_end;
static __thread int passing_on; // a call from Fortran, whose function in C ends in PMPI_* itself

static int look(struct dl_phdr_info* library, size_t size, void* none)
{
  (void)size, (void)none;
  if (!strstr(library->dlpi_name, "libmpi_mpifh"))
    return 0;
  for (int i = 0; i < library->dlpi_phnum; i++)
    if (library->dlpi_phdr[i].p_type == PT_LOAD && library->dlpi_phdr[i].p_flags & PF_X) {
      bindings     = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr;
      bindings_end = bindings + library->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

static int from_fortran(const void* caller)
{
  static int known;
  if (!known) {
    dl_iterate_phdr(look, NULL);
    known = 1;
  }
  return (uintptr_t)caller - bindings < bindings_end - bindings;
}

#define PASSED_ON(function, parameters, arguments)                                                                     \
  int PMPI_##function parameters                                                                                       \
  {                                                                                                                    \
    static int(*actual) parameters;                                                                                    \
    if (!actual)                                                                                                       \
      *(void**)&actual = dlsym(RTLD_NEXT, "PMPI_" #function);                                                          \
    if (passing_on || !from_fortran(__builtin_return_address(0)))                                                      \
      return actual arguments;                                                                                         \
    passing_on       = 1;                                                                                              \
    const int status = MPI_##function arguments;                                                                       \
    passing_on       = 0;                                                                                              \
    return status;                                                                                                     \
  }
#define SENT (const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
#define POSTED (const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
#define POSTED_TO (void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
#define REDUCED (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define ROOTED                                                                                                         \
  (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, int root,      \
   MPI_Comm comm)
#define SHARED                                                                                                         \
  (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, MPI_Comm comm)

PASSED_ON(Init, (int* argc, char*** argv), (argc, argv))
PASSED_ON(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))
PASSED_ON(Finalize, (void), ())
PASSED_ON(Abort, (MPI_Comm comm, int code), (comm, code))
PASSED_ON(Send, SENT, (data, count, type, peer, tag, comm))
PASSED_ON(Ssend, SENT, (data, count, type, peer, tag, comm))
PASSED_ON(Bsend, SENT, (data, count, type, peer, tag, comm))
PASSED_ON(Rsend, SENT, (data, count, type, peer, tag, comm))
PASSED_ON(Isend, POSTED, (data, count, type, peer, tag, comm, request))
PASSED_ON(Issend, POSTED, (data, count, type, peer, tag, comm, request))
PASSED_ON(Send_init, POSTED, (data, count, type, peer, tag, comm, request))
PASSED_ON(Irecv, POSTED_TO, (data, count, type, peer, tag, comm, request))
PASSED_ON(Recv_init, POSTED_TO, (data, count, type, peer, tag, comm, request))
PASSED_ON(Recv, (void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* result),
          (data, count, type, peer, tag, comm, result))
PASSED_ON(Sendrecv,
          (const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
           MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* result),
          (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, result))
PASSED_ON(Sendrecv_replace,
          (void* data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm,
           MPI_Status* result),
          (data, count, type, to, out_tag, from, in_tag, comm, result))
PASSED_ON(Wait, (MPI_Request* request, MPI_Status* result), (request, result))
PASSED_ON(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses))
PASSED_ON(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* result), (count, requests, index, result))
PASSED_ON(Waitsome, (int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[]),
          (count, requests, many, indices, statuses))
PASSED_ON(Test, (MPI_Request* request, int* flag, MPI_Status* result), (request, flag, result))
PASSED_ON(Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]), (count, requests, flag, statuses))
PASSED_ON(Testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* result),
          (count, requests, index, flag, result))
PASSED_ON(Testsome, (int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[]),
          (count, requests, many, indices, statuses))
PASSED_ON(Start, (MPI_Request* request), (request))
PASSED_ON(Startall, (int count, MPI_Request requests[]), (count, requests))
PASSED_ON(Request_free, (MPI_Request* request), (request))
PASSED_ON(Barrier, (MPI_Comm comm), (comm))
PASSED_ON(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm), (data, count, type, root, comm))
PASSED_ON(Reduce,
          (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
          (out, in, count, type, op, root, comm))
PASSED_ON(Allreduce, REDUCED, (out, in, count, type, op, comm))
PASSED_ON(Scan, REDUCED, (out, in, count, type, op, comm))
PASSED_ON(Exscan, REDUCED, (out, in, count, type, op, comm))
PASSED_ON(Gather, ROOTED, (out, out_count, out_type, in, in_count, in_type, root, comm))
PASSED_ON(Scatter, ROOTED, (out, out_count, out_type, in, in_count, in_type, root, comm))
PASSED_ON(Allgather, SHARED, (out, out_count, out_type, in, in_count, in_type, comm))
PASSED_ON(Alltoall, SHARED, (out, out_count, out_type, in, in_count, in_type, comm))
PASSED_ON(Alltoallv,
          (const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in,
           const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm),
          (out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm))
PASSED_ON(Allgatherv,
          (const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[], const int in_at[],
           MPI_Datatype in_type, MPI_Comm comm),
          (out, out_count, out_type, in, in_counts, in_at, in_type, comm))
PASSED_ON(Gatherv,
          (const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[], const int in_at[],
           MPI_Datatype in_type, int root, MPI_Comm comm),
          (out, out_count, out_type, in, in_counts, in_at, in_type, root, comm))
PASSED_ON(Scatterv,
          (const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in, int in_count,
           MPI_Datatype in_type, int root, MPI_Comm comm),
          (out, out_counts, out_at, out_type, in, in_count, in_type, root, comm))
PASSED_ON(Reduce_scatter,
          (const void* out, void* in, const int in_counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
          (out, in, in_counts, type, op, comm))
#endif
