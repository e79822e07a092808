// What one process has done: its actions by number, folded into loops while they come, and the file that holds them.
//
// A loop of a million turns is one node. Between two actions only how often and how long in total is kept. The file is
// written at the end, when the program aborts, and from time to time, each time whole, so that a killed program leaves
// one.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "call_counts.h"
#include "instruction_counter.h"

enum { LONGEST_PERIOD = 128, NULL_RANK = -333, BYTES = 6 /* MPI_BYTE, as SimGrid numbers it */, FRESH = 10000 /* ns */ };

// Most words of a trace in memory, 128 MiB: a program whose calls all differ must not be short of it.
#ifndef MOST_WORDS
#define MOST_WORDS (1 << 24)
#endif

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
    "exscan",    "cancel"};
enum Name {
  INIT, FINALIZE, SEND, ISEND, SSEND, ISSEND, BSEND, RSEND, RECV, IRECV, SENDRECV, WAIT, WAITALL, BARRIER, BCAST,
  REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, REDUCESCATTER,
  SCAN, EXSCAN, CANCEL // of a receive that began before
};

static Table actions, bodies, betweens;
static Words nodes, counts, totals, executed; // of the program; of betweens: how often, nanoseconds, instructions
static int rank = -1, processes, whole;
static pid_t recorded; // the process that this is the trace of
// This thread's calls become actions: those of one thread do, which starts MPI. Others may call at the same time.
static __thread int recording __attribute__((tls_model("initial-exec")));
static int with_others; // a call, with processes of another world, which no rank names
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

static int full(void)
{
  return nodes.size + actions.keys.size + betweens.keys.size + bodies.keys.size >= MOST_WORDS;
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
  write_counts(file);
  fprintf(file, "%s\n", full() ? "cut" : how);
  // What failed in the middle leaves a hole, though the end was written: others made room meanwhile.
  const int failed = ferror(file);
  if (fclose(file) == 0 && !failed)
    rename(part, path);
  else
    unlink(part);
}

// Begins a call: what was computed since the last one.
static Work entered(void)
{
  if (!recording)
    return NOTHING;
  const int64_t instructions = count_at_begin() - left.instructions;
  return (Work){processor_time() - left.time, instructions};
}

// Ends a call; what no action has taken up of the computation before it is the next one's.
static void ended_owing(Work owing)
{
  if (!recording)
    return;
  static Unrecorded calls = {.name = "calls with processes of another world"};
  if (with_others)
    counted(&calls);
  with_others       = 0;
  left.time         = processor_time() - owing.time;
  left.instructions = count_at_end() - owing.instructions;
}

static void ended(void)
{
  ended_owing(NOTHING);
}

static void add(const int64_t* key, size_t size, Work computed)
{
  if (!recording || with_others)
    return;
  static Unrecorded rest = {.name = "calls for which there was no room"};
  if (full()) {
    counted(&rest);
    return;
  }
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
