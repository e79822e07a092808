// How often a program made the calls that no action tells, by name.
#include <stdint.h>
#include <stdio.h>

typedef struct Unrecorded {
  const char* name;
  int64_t times;
  struct Unrecorded* next;
} Unrecorded;
static Unrecorded* unrecorded; // those that were made, the last new one first

// Counts a call of any thread.
static void counted(Unrecorded* one)
{
  if (__atomic_fetch_add(&one->times, 1, __ATOMIC_RELAXED) > 0)
    return;
  one->next = __atomic_load_n(&unrecorded, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&unrecorded, &one->next, one, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    ;
}

static void write_counts(FILE* file)
{
  for (Unrecorded* one = __atomic_load_n(&unrecorded, __ATOMIC_ACQUIRE); one; one = one->next)
    fprintf(file, "unrecorded %lld %s\n", (long long)__atomic_load_n(&one->times, __ATOMIC_RELAXED), one->name);
}
