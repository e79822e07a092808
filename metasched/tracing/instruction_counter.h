// Counts the instructions of one thread outside of MPI: by the processor, through perf_event_open, or by callgrind.
//
// METASCHED_INSTRUCTIONS says how: perf, valgrind, time (they are not counted), or auto, which is perf where a counter
// can be read, else time. Under callgrind, collection is on between calls only; its log is asked for the sum so far.
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef WITH_VALGRIND
#include <valgrind/callgrind.h>
#endif

// Tests put others in the place of the event, its page and the processor's instruction: virtual machines count nothing.
#ifndef EVENT
#define EVENT_TYPE PERF_TYPE_HARDWARE
#define EVENT PERF_COUNT_HW_INSTRUCTIONS
#endif
#ifndef MAPPED
#define MAPPED(file) mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, file, 0)
#endif
#ifndef READ_PROCESSOR
#if defined(__x86_64__) || defined(__i386__)
static uint64_t read_processor(uint32_t number)
{
  uint32_t low, high;
  __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
  return (uint64_t)high << 32 | low;
}
#define READ_PROCESSOR read_processor
#endif
#endif

static struct {
  enum { NOT_COUNTED, BY_PERF, BY_VALGRIND } by;
  int file; // the counter of perf, or callgrind's log
  int on;   // whether callgrind collects
  off_t end; // of what is known of its log
  int64_t sum;
  const volatile struct perf_event_mmap_page* page; // of perf's counter, or NULL
} counter = {NOT_COUNTED, -1, 0, 0, 0, NULL};

static const char* counted_by(void)
{
  static const char* const NAMES[] = {"time", "perf", "valgrind"};
  return NAMES[counter.by];
}

// Reads perf's counter without the kernel, which states in the page how much it has counted up to when it last gave the
// thread a register of the processor, and in which; whether it could. The page's lock changes with what it states.
static int read_in_user_space(int64_t* sum)
{
#ifdef READ_PROCESSOR
  const volatile struct perf_event_mmap_page* page = counter.page;
  if (!page || !page->cap_user_rdpmc)
    return 0;
  for (uint32_t lock;;) {
    lock = page->lock;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const uint32_t number = page->index, unused = 64 - page->pmc_width;
    const int64_t before  = page->offset;
    // Of the register's bits that are used the first is a sign.
    const int64_t since = number ? (int64_t)(READ_PROCESSOR(number - 1) << unused) >> unused : 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (page->lock != lock)
      continue;
    if (number)
      *sum = before + since;
    return number != 0;
  }
#else
  (void)sum;
  return 0;
#endif
}

// The sum so far; counting ends for good where it cannot be read.
static void read_sum(void)
{
  int read_whole = counter.by == BY_PERF && read_in_user_space(&counter.sum);
  if (counter.by == BY_PERF && !read_whole) {
    // A pinned counter that has lost its place in the processor reads as an end of file.
    read_whole = read(counter.file, &counter.sum, sizeof counter.sum) == sizeof counter.sum;
  }
#ifdef WITH_VALGRIND
  if (counter.by == BY_VALGRIND) {
    char text[4096] = "", name[64];
    struct stat log;
    int thread;
    if (VALGRIND_MONITOR_COMMAND("status internal") == 0 && fstat(counter.file, &log) == 0 &&
        pread(counter.file, text, sizeof text - 1, counter.end) > 0) {
      const char* at = strstr(text, "current-tid: ");
      if (at && sscanf(at, "current-tid: %d", &thread) == 1) {
        snprintf(name, sizeof name, "\nevents-%d: ", thread);
        at         = strstr(at, name);
        read_whole = at != NULL;
        counter.sum = at ? strtoll(at + strlen(name), NULL, 10) : 0;
      }
      // Callgrind goes on writing at its own place in the file: what is before takes no room any more.
      counter.end = log.st_size;
      read_whole  = read_whole && ftruncate(counter.file, 0) == 0;
    }
  }
#endif
  if (!read_whole)
    counter.by = NOT_COUNTED;
}

static void collect(int on)
{
#ifdef WITH_VALGRIND
  if (counter.on != on)
    CALLGRIND_TOGGLE_COLLECT;
#endif
  counter.on = on;
}

// The instructions so far, at the begin and at the end of a call of MPI.
static int64_t count_at_begin(void)
{
  if (counter.by == BY_VALGRIND)
    collect(0);
  if (counter.by != NOT_COUNTED)
    read_sum();
  return counter.sum;
}
static int64_t count_at_end(void)
{
  if (counter.by == BY_PERF)
    read_sum();
  if (counter.by == BY_VALGRIND)
    collect(1);
  return counter.sum;
}

static const char* start_perf(void)
{
  struct perf_event_attr event = {
      .type = EVENT_TYPE, .size = sizeof event, .config = EVENT, .pinned = 1, .exclude_kernel = 1, .exclude_hv = 1};
  counter.file = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (counter.file >= 0) {
    counter.by       = BY_PERF;
    const void* page = MAPPED(counter.file);
    counter.page     = page == MAP_FAILED ? NULL : page;
    read_sum();
    return counter.by == BY_PERF ? NULL : "the processor's counter is taken by others";
  }
  return errno == EACCES || errno == EPERM
             ? "the kernel permits no one to read them: /proc/sys/kernel/perf_event_paranoid is expected to be at most 2"
             : "this processor has no counter of instructions, as most virtual machines";
}

static const char* start_valgrind(const char* folder)
{
#ifdef WITH_VALGRIND
  if (RUNNING_ON_VALGRIND) {
    char log[4200];
    snprintf(log, sizeof log, "%s/.valgrind-%d", folder, (int)getpid());
    counter.file = open(log, O_RDWR | O_CLOEXEC);
    counter.by   = counter.file < 0 ? NOT_COUNTED : BY_VALGRIND;
    for (int64_t i = 0, before = 0; i < 2 && counter.by == BY_VALGRIND; i++, before = counter.sum) {
      read_sum();
      counter.on = i > 0 && counter.sum > before;
    }
    return counter.by == BY_VALGRIND ? NULL : "valgrind does not tell them, expected valgrind --tool=callgrind";
  }
#endif
  (void)folder;
  return "the program does not run under valgrind, expected a launcher such as mpirun -np 16 valgrind --tool=callgrind ./app";
}

// Begins to count as METASCHED_INSTRUCTIONS asks for; why it cannot, or NULL.
static const char* start_counter(const char* folder)
{
  const char* asked = getenv("METASCHED_INSTRUCTIONS");
  if (asked && strcmp(asked, "time") == 0)
    return NULL;
  if (asked && strcmp(asked, "valgrind") == 0)
    return start_valgrind(folder);
  const char* why = start_perf();
  return asked && strcmp(asked, "perf") == 0 ? why : NULL;
}
