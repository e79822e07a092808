// Requests of calls that do not block, from their beginning to the wait for them, and messages that were probed.
#include <mpi.h>

#include "communicators.h"

// Requests that have not been waited for, in the order of their asking among those of one handle: what MPI completes at
// once may share its handle with others.
typedef struct {
  MPI_Request request;
  enum Name name;
  Members members; // of its communicator
  int64_t source, target, tag, size;
  int persistent, started; // and not waited for
  int open;                // a receive of which only its end tells the source and the tag
  int given_up;            // a receive of which only its end tells whether it was cancelled in time
  size_t next;             // of those with the same hash, counted from 1
} Asked;
static Asked* asked;
static size_t asked_size, asked_room, asked_free, heads[1024];

static size_t* head(MPI_Request request)
{
  uint64_t key = 0;
  memcpy(&key, &request, sizeof request);
  return &heads[key * 0x9e3779b97f4a7c15ull >> 54];
}

static int has_partner(const Asked* one)
{
  return one->source >= 0 && one->target >= 0;
}

static void remember(MPI_Request request, Asked one)
{
  if (!one.persistent && !one.open && !has_partner(&one))
    return;
  size_t at = asked_free;
  if (at)
    asked_free = asked[at - 1].next;
  else {
    if (asked_size == asked_room) {
      asked_room = asked_room ? 2 * asked_room : 64;
      asked      = realloc(asked, asked_room * sizeof *asked);
      if (!asked)
        abort();
    }
    at = ++asked_size;
  }
  one.request   = request;
  one.next      = 0;
  asked[at - 1] = one;
  open_receives += one.open;
  size_t* place = head(request);
  while (*place)
    place = &asked[*place - 1].next;
  *place = at;
}

static Asked* find(MPI_Request request)
{
  for (size_t at = *head(request); at; at = asked[at - 1].next)
    if (asked[at - 1].request == request)
      return &asked[at - 1];
  return NULL;
}

static void remove_asked(Asked* found)
{
  const size_t at = (size_t)(found - asked) + 1;
  size_t* place   = head(found->request);
  while (*place != at)
    place = &asked[*place - 1].next;
  *place     = found->next;
  found->next = asked_free;
  asked_free  = at;
  open_receives -= found->open || found->given_up;
}

static Asked sent_to(Members members, int peer, int tag, int64_t size, enum Name name)
{
  return (Asked){.name = name, .members = members, .source = rank, .target = rank_among(members, peer), .tag = tag,
                 .size = size, .started = 1};
}
static Asked received_from(Members members, int peer, int tag, int64_t size)
{
  return (Asked){.name = IRECV, .members = members, .source = rank_among(members, peer), .target = rank, .tag = tag,
                 .size = size, .started = 1,
                 .open = peer != MPI_PROC_NULL && (peer == MPI_ANY_SOURCE || tag == MPI_ANY_TAG)};
}
static Asked again(Asked one)
{
  one.persistent = 1;
  one.started    = 0;
  return one;
}

// The action with which a request begins; that of an open receive has to wait for its end.
static void begin(const Asked* one, Work* computed)
{
  if (!one->open)
    ADD(*computed, one->name, 0, one->name == IRECV ? one->source : one->target, one->tag, one->size, BYTES);
}
static void started(MPI_Request request, Work* computed)
{
  static Unrecorded others = {.name = "MPI_Start"};
  Asked* found             = find(request);
  if (found && found->persistent) {
    found->started = 1;
    begin(found, computed);
  } else
    counted(&others);
}

// A receive that is to be cancelled stands among the actions already, unless it is open.
static void give_up(MPI_Request request)
{
  static Unrecorded others = {.name = "MPI_Cancel"};
  Asked* found             = find(request);
  if (found && found->name != IRECV)
    counted(&others);
  else if (found && !found->open && !found->given_up) {
    found->given_up = 1;
    open_receives++;
  }
}

// The bytes of a message that came, as far as its status tells.
static int64_t received(const MPI_Status* status, int from_none, int64_t room)
{
  MPI_Count got = 0;
  if (!from_none)
    PMPI_Get_elements_x(status, MPI_BYTE, &got);
  return from_none || got == MPI_UNDEFINED ? room : got;
}

// Ends a request that was started; whether a wait for it is recorded.
static int settled(MPI_Request request, const MPI_Status* status, Asked* one, Work* computed)
{
  Asked* found = find(request);
  if (!found || !found->started)
    return 0;
  *one = *found;
  if (!found->persistent)
    remove_asked(found);
  else {
    found->started = 0;
    open_receives -= found->given_up;
    found->given_up = 0;
  }
  int cancelled = 0;
  if (one->open || one->given_up)
    PMPI_Test_cancelled(status, &cancelled);
  if (cancelled && one->given_up)
    ADD(*computed, CANCEL, 0, one->source, one->tag, one->size, BYTES);
  if (cancelled)
    return 0;
  if (one->open) {
    one->source = rank_among(one->members, status->MPI_SOURCE);
    one->tag    = status->MPI_TAG;
    one->size   = received(status, one->source < 0, one->size);
    one->open   = 0;
    begin(one, computed);
  }
  return has_partner(one);
}
static void waited(MPI_Request request, const MPI_Status* status, Work* computed)
{
  Asked one;
  if (settled(request, status, &one, computed))
    ADD(*computed, WAIT, 0, one.source, one.target, one.tag);
}
static void wait_for_all(int count, const MPI_Request requests[], const MPI_Status statuses[], Work* computed)
{
  Asked one;
  int64_t known = 0;
  for (int i = 0; i < count; i++)
    known += settled(requests[i], statuses ? &statuses[i] : NULL, &one, computed);
  if (known)
    ADD(*computed, WAITALL, 0, known);
}

// Memory that is freed at the end of the block that asks for it.
#define OWNED __attribute__((cleanup(release)))
static void release(void* place)
{
  void* memory;
  memcpy(&memory, place, sizeof memory);
  free(memory);
}

static MPI_Request* copied(int count, const MPI_Request requests[])
{
  MPI_Request* ahead = malloc(((size_t)(count > 0 ? count : 0) + 1) * sizeof *ahead);
  if (ahead && count > 0)
    memcpy(ahead, requests, (size_t)count * sizeof *ahead);
  return ahead;
}
static MPI_Status* room_for(int count)
{
  return malloc(((size_t)(count > 0 ? count : 0) + 1) * sizeof(MPI_Status));
}

// Messages that were found by a probe, with the members of their communicators.
typedef struct {
  MPI_Message message;
  Members members;
} Probed;
static Probed* probes;


static void probed(MPI_Message message, MPI_Comm comm)
{
  probes = realloc(probes, (probes_size + 1) * sizeof *probes);
  if (!probes)
    abort();
  probes[probes_size++] = (Probed){message, members_of(comm)};
}
static Members members_of_probed(MPI_Message message)
{
  for (size_t i = probes_size; i-- > 0;)
    if (probes[i].message == message) {
      const Members found = probes[i].members;
      probes[i]           = probes[--probes_size];
      return found;
    }
  return members_of(MPI_COMM_WORLD);
}
