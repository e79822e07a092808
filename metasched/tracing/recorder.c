// Records what one process does through MPI, with its computation between calls: preloaded into programs in C and Fortran.
//
//   METASCHED_TRACE=DIR METASCHED_INSTRUCTIONS=auto LD_PRELOAD=recorder.so mpirun -np 16 ./app
//
// Each call becomes an action in the notation of SimGrid's time-independent traces (ranks of the world, bytes), which
// the file DIR/rank-N of the process holds.
#define _GNU_SOURCE
#include "unrecorded_calls.h"

static int64_t bytes(int64_t count, MPI_Datatype type)
{
  MPI_Count size = 0; // an int holds none of 2 GiB
  if (count <= 0)     // the type of nothing may be anything
    return 0;
  if (type != MPI_DATATYPE_NULL)
    PMPI_Type_size_x(type, &size);
  return count * size;
}

// Ends the run before it has begun, and leaves the reason.
static void refuse(const char* what, const char* why)
{
  char path[4200];
  snprintf(path, sizeof path, "%s/refused", folder);
  FILE* file = fopen(path, "w");
  if (file) {
    fprintf(file, "%s%s\n", what, why);
    fclose(file);
  }
  PMPI_Abort(MPI_COMM_WORLD, 2);
}

static void start(int was_initialized)
{
  if (was_initialized != MPI_SUCCESS || !getenv("METASCHED_TRACE"))
    return;
  // Processes that the program starts have ranks of a world of their own.
  MPI_Comm parent;
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL)
    return;
  snprintf(folder, sizeof folder, "%s", getenv("METASCHED_TRACE"));
  PMPI_Comm_size(MPI_COMM_WORLD, &processes);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* why = start_counter(folder);
  if (why)
    refuse("instructions cannot be counted: ", why);
  char path[4200];
  snprintf(path, sizeof path, "%s/rank-%d", folder, rank);
  if (access(path, F_OK) == 0)
    refuse("the launcher starts more than one MPI program, expected one in each recording", "");
  recorded = getpid();
  recording = 1;
  begun = written = now(CLOCK_MONOTONIC);
  Work computed   = NOTHING;
  ADD(computed, INIT, 0);
  ended();
}

// What other threads than the recorded one call is counted and passed on.
#define OF_THIS_THREAD(function, arguments)                                                                            \
  static Unrecorded of_others = {.name = "MPI_" #function " by other threads"};                                        \
  if (!recording) {                                                                                                    \
    if (rank >= 0)                                                                                                     \
      counted(&of_others);                                                                                             \
    return PMPI_##function arguments;                                                                                  \
  }
// A call, with what is done before it: `computed` is the work since the last one, which an action takes up.
#define CALL(function, parameters, arguments, ...)                                                                     \
  PASSED_ON(function, parameters, arguments)                                                                           \
  int MPI_##function parameters                                                                                        \
  {                                                                                                                    \
    OF_THIS_THREAD(function, arguments)                                                                                \
    Work computed = entered();                                                                                         \
    __VA_ARGS__;                                                                                                       \
    const int status = PMPI_##function arguments;                                                                      \
    ended_owing(computed);                                                                                             \
    return status;                                                                                                     \
  }
// A call of which something is known behind it only; `called` may have other arguments, which `before` makes.
#define CALL_KNOWN_BEHIND(function, parameters, arguments, before, called, ...)                                        \
  PASSED_ON(function, parameters, arguments)                                                                           \
  int MPI_##function parameters                                                                                        \
  {                                                                                                                    \
    OF_THIS_THREAD(function, arguments)                                                                                \
    Work computed = entered();                                                                                         \
    before;                                                                                                            \
    const int status = PMPI_##function called;                                                                         \
    if (status == MPI_SUCCESS) {                                                                                       \
      __VA_ARGS__;                                                                                                     \
    }                                                                                                                  \
    ended_owing(computed);                                                                                             \
    return status;                                                                                                     \
  }

PASSED_ON(Init, (int* argc, char*** argv), (argc, argv))
int MPI_Init(int* argc, char*** argv)
{
  const int status = PMPI_Init(argc, argv);
  start(status);
  return status;
}
PASSED_ON(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided)
{
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  start(status);
  return status;
}
PASSED_ON(Finalize, (void), ())
int MPI_Finalize(void)
{
  Work computed = entered();
  ADD(computed, FINALIZE, 0);
  if (recording)
    write_all("end");
  whole     = 1;
  rank      = -1;
  recording = 0;
  return PMPI_Finalize();
}
PASSED_ON(Abort, (MPI_Comm comm, int code), (comm, code))
int MPI_Abort(MPI_Comm comm, int code)
{
  if (recording)
    write_all("cut");
  return PMPI_Abort(comm, code);
}
__attribute__((destructor)) static void leave(void)
{
  // A process that was forked has a copy of all of this.
  if (recording && !whole && getpid() == recorded)
    write_all("cut");
}

CALL(Comm_free, (MPI_Comm * comm), (comm), forget_communicator(*comm))
CALL(Comm_disconnect, (MPI_Comm * comm), (comm), forget_communicator(*comm))

#define SENT (const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
#define SENDING(function, name)                                                                                        \
  CALL(function, SENT, (data, count, type, peer, tag, comm),                                                           \
       ADD(computed, name, 0, world_rank(comm, peer), tag, bytes(count, type), BYTES))                                 \
  LARGE_COUNTS(function)
SENDING(Send, SEND)
SENDING(Ssend, SSEND)
SENDING(Bsend, BSEND)
SENDING(Rsend, RSEND)

#define POSTED (const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
#define POSTED_TO (void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request)
#define POSTED_BY (data, count, type, peer, tag, comm, request)
#define POSTING(function, name)                                                                                        \
  CALL_KNOWN_BEHIND(function, POSTED, POSTED_BY,                                                                       \
                    const Asked one = sent_to(members_of(comm), peer, tag, bytes(count, type), name);                              \
                    begin(&one, &computed), POSTED_BY, remember(*request, one))                                        \
  LARGE_COUNTS(function)
POSTING(Isend, ISEND)
POSTING(Issend, ISSEND)
POSTING(Ibsend, ISEND)
POSTING(Irsend, ISEND)
CALL_KNOWN_BEHIND(Irecv, POSTED_TO, POSTED_BY,
                  const Asked one = received_from(members_of(comm), peer, tag, bytes(count, type));
                  begin(&one, &computed), POSTED_BY, remember(*request, one))

// Persistent requests begin when they are started.
#define PERSISTENT(function, name)                                                                                     \
  CALL_KNOWN_BEHIND(function, POSTED, POSTED_BY, , POSTED_BY,                                                          \
                    remember(*request, again(sent_to(members_of(comm), peer, tag, bytes(count, type), name))))         \
  LARGE_COUNTS(function)
PERSISTENT(Send_init, ISEND)
PERSISTENT(Ssend_init, ISSEND)
PERSISTENT(Bsend_init, ISEND)
PERSISTENT(Rsend_init, ISEND)
CALL_KNOWN_BEHIND(Recv_init, POSTED_TO, POSTED_BY, , POSTED_BY,
                  remember(*request, again(received_from(members_of(comm), peer, tag, bytes(count, type)))))
CALL(Start, (MPI_Request * request), (request), started(*request, &computed))
CALL(Startall, (int count, MPI_Request requests[]), (count, requests),
     for (int i = 0; i < count; i++) started(requests[i], &computed))
CALL(Cancel, (MPI_Request * request), (request), give_up(*request))
// The end of a receive that is to be cancelled waits for nobody, and tells whether it was.
CALL(Request_free, (MPI_Request * request), (request), Asked* found = find(*request);
     if (found && found->given_up && !found->persistent) {
       const MPI_Request ahead = *request;
       MPI_Status answer;
       const int status = PMPI_Wait(request, &answer);
       waited(ahead, &answer, &computed);
       ended_owing(computed);
       return status;
     }
     if (found) remove_asked(found))

// A status in the place of one that the program does not want.
#define ANSWERED                                                                                                           \
  MPI_Status own;                                                                                                      \
  MPI_Status* const answer = result == MPI_STATUS_IGNORE ? &own : result
CALL_KNOWN_BEHIND(Recv, (void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* result),
                  (data, count, type, peer, tag, comm, result), ANSWERED, (data, count, type, peer, tag, comm, answer),
                  const int from = peer == MPI_ANY_SOURCE ? answer->MPI_SOURCE : peer;
                  ADD(computed, RECV, 0, world_rank(comm, from), tag == MPI_ANY_TAG ? answer->MPI_TAG : tag,
                      received(answer, peer == MPI_PROC_NULL, bytes(count, type)), BYTES))
CALL_KNOWN_BEHIND(Sendrecv,
                  (const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
                   MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* result),
                  (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, result), ANSWERED,
                  (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, answer),
                  const int source = from == MPI_ANY_SOURCE ? answer->MPI_SOURCE : from;
                  ADD(computed, SENDRECV, 0, bytes(out_count, out_type), world_rank(comm, to),
                      received(answer, from == MPI_PROC_NULL, bytes(in_count, in_type)), world_rank(comm, source), BYTES,
                      BYTES))
CALL_KNOWN_BEHIND(Sendrecv_replace,
                  (void* data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm,
                   MPI_Status* result),
                  (data, count, type, to, out_tag, from, in_tag, comm, result), ANSWERED,
                  (data, count, type, to, out_tag, from, in_tag, comm, answer),
                  const int source = from == MPI_ANY_SOURCE ? answer->MPI_SOURCE : from;
                  ADD(computed, SENDRECV, 0, bytes(count, type), world_rank(comm, to),
                      received(answer, from == MPI_PROC_NULL, bytes(count, type)), world_rank(comm, source), BYTES, BYTES))

// Messages that were found before they are received: the time to find them is none of computation.
CALL(Probe, (int peer, int tag, MPI_Comm comm, MPI_Status* result), (peer, tag, comm, result), )
CALL(Iprobe, (int peer, int tag, MPI_Comm comm, int* flag, MPI_Status* result), (peer, tag, comm, flag, result), )
CALL_KNOWN_BEHIND(Mprobe, (int peer, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* result),
                  (peer, tag, comm, message, result), , (peer, tag, comm, message, result), probed(*message, comm))
CALL_KNOWN_BEHIND(Improbe, (int peer, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* result),
                  (peer, tag, comm, flag, message, result), , (peer, tag, comm, flag, message, result),
                  if (*flag) probed(*message, comm))
CALL_KNOWN_BEHIND(Mrecv, (void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* result),
                  (data, count, type, message, result), ANSWERED;
                  const Members members = members_of_probed(*message), (data, count, type, message, answer),
                  ADD(computed, RECV, 0, rank_among(members, answer->MPI_SOURCE), answer->MPI_TAG,
                      received(answer, answer->MPI_SOURCE < 0, bytes(count, type)), BYTES))
CALL_KNOWN_BEHIND(Imrecv, (void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request),
                  (data, count, type, message, request),
                  const Members members = members_of_probed(*message), (data, count, type, message, request),
                  remember(*request, received_from(members, MPI_ANY_SOURCE, MPI_ANY_TAG, bytes(count, type))))

// A wait for all is recorded before it, unless it tells where messages came from.
CALL_KNOWN_BEHIND(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses),
                  OWNED MPI_Status* own   = open_receives && statuses == MPI_STATUSES_IGNORE ? room_for(count) : NULL;
                  OWNED MPI_Request* open = open_receives ? copied(count, requests) : NULL;
                  if (!open) wait_for_all(count, requests, NULL, &computed),
                  (count, requests, own ? own : statuses),
                  if (open) wait_for_all(count, open, own ? own : statuses, &computed))
CALL_KNOWN_BEHIND(Wait, (MPI_Request * request, MPI_Status* result), (request, result), ANSWERED;
                  const MPI_Request ahead = *request, (request, answer), waited(ahead, answer, &computed))
// Which of several requests has ended is known behind the call only.
#define WAITING(function, parameters, arguments, called, ignored, complete, place)                                     \
  CALL_KNOWN_BEHIND(function, parameters, arguments, OWNED MPI_Request* ahead = copied(count, requests);               \
                    OWNED MPI_Status* own  = open_receives && statuses == ignored ? room_for(count) : NULL;            \
                    MPI_Status* const answer = own ? own : statuses, called,                                           \
                    for (int i = 0; i < (complete); i++) if ((place) >= 0)                                             \
                        waited(ahead[place], open_receives ? &answer[i] : NULL, &computed))
WAITING(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* statuses),
        (count, requests, index, statuses), (count, requests, index, answer), MPI_STATUS_IGNORE,
        *index != MPI_UNDEFINED, *index)
WAITING(Waitsome, (int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[]),
        (count, requests, many, indices, statuses), (count, requests, many, indices, answer), MPI_STATUSES_IGNORE,
        *many == MPI_UNDEFINED ? 0 : *many, indices[i])
WAITING(Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]),
        (count, requests, flag, statuses), (count, requests, flag, answer), MPI_STATUSES_IGNORE, *flag ? count : 0, i)
WAITING(Testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* statuses),
        (count, requests, index, flag, statuses), (count, requests, index, flag, answer), MPI_STATUS_IGNORE,
        *flag && *index != MPI_UNDEFINED, *index)
WAITING(Testsome, (int count, MPI_Request requests[], int* many, int indices[], MPI_Status statuses[]),
        (count, requests, many, indices, statuses), (count, requests, many, indices, answer), MPI_STATUSES_IGNORE,
        *many == MPI_UNDEFINED ? 0 : *many, indices[i])
CALL_KNOWN_BEHIND(Test, (MPI_Request * request, int* flag, MPI_Status* result), (request, flag, result), ANSWERED;
                  const MPI_Request ahead = *request, (request, flag, answer),
                  if (*flag) waited(ahead, answer, &computed))

// Collective operations; one that does not block is recorded where it begins: in this all processes have the same order.
#define UNPACKED(...) __VA_ARGS__
#define COLLECTIVE(function, begun_only, parameters, arguments, ...)                                                   \
  CALL(function, parameters, arguments, __VA_ARGS__)                                                                   \
  CALL(begun_only, (UNPACKED parameters, MPI_Request * request), (UNPACKED arguments, request), __VA_ARGS__)           \
  OTHER_FORMS(function, begun_only)
COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), ADD(computed, BARRIER, among(comm)))
COLLECTIVE(Bcast, Ibcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm),
           ADD(computed, BCAST, among(comm), bytes(count, type), world_rank(comm, root), BYTES))
COLLECTIVE(Reduce, Ireduce,
           (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, count, type, op, root, comm),
           ADD(computed, REDUCE, among(comm), bytes(count, type), 0, world_rank(comm, root), BYTES))

#define REDUCED (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define REDUCING(function, begun_only, name)                                                                           \
  COLLECTIVE(function, begun_only, REDUCED, (out, in, count, type, op, comm),                                          \
             ADD(computed, name, among(comm), bytes(count, type), 0, BYTES))
REDUCING(Allreduce, Iallreduce, ALLREDUCE)
REDUCING(Scan, Iscan, SCAN)
REDUCING(Exscan, Iexscan, EXSCAN)

// What the root leaves in place has the size of the others' part. Arguments that mean nothing to a process may be
// anything: those for all parts where it is not the root, and between two groups, those for one part in the root's group.
#define ROOTED                                                                                                         \
  (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, int root,      \
   MPI_Comm comm)
#define ROOTED_BY (out, out_count, out_type, in, in_count, in_type, root, comm)
#define TO_ROOT(function, begun_only, name)                                                                            \
  COLLECTIVE(function, begun_only, ROOTED, ROOTED_BY, const int gathers = name == GATHER;                              \
             const int64_t all  = !at_root(comm, root) ? 0                                                             \
                                  : gathers            ? bytes(in_count, in_type)                                      \
                                                       : bytes(out_count, out_type);                                   \
             const int64_t each = (gathers ? out : in) == MPI_IN_PLACE ? all                                           \
                                  : root < 0                           ? 0                                             \
                                  : gathers                            ? bytes(out_count, out_type)                    \
                                                                       : bytes(in_count, in_type);                     \
             ADD(computed, name, among(comm), gathers ? each : all, gathers ? all : each, world_rank(comm, root),      \
                 BYTES, BYTES))
TO_ROOT(Gather, Igather, GATHER)
TO_ROOT(Scatter, Iscatter, SCATTER)

#define SHARED                                                                                                         \
  (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, MPI_Comm comm)
#define SHARED_BY (out, out_count, out_type, in, in_count, in_type, comm)
#define TO_ALL(function, begun_only, name)                                                                             \
  COLLECTIVE(function, begun_only, SHARED, SHARED_BY,                                                                  \
             ADD(computed, name, among(comm), bytes(in_count, in_type), bytes(in_count, in_type), BYTES, BYTES))
TO_ALL(Allgather, Iallgather, ALLGATHER)
TO_ALL(Alltoall, Ialltoall, ALLTOALL)

// Operations with a number for each process.
static void start_list(Words* key, int64_t name, MPI_Comm comm)
{
  push(key, name);
  push(key, among(comm));
}
static void add_list(Words* key, int64_t types, Work* computed)
{
  while (types-- > 0)
    push(key, BYTES);
  add(key->at, key->size, *computed);
  *computed = NOTHING;
  free(key->at);
}

// The bytes for each process, in the order of the world where all take part; none where a process need not know them.
// All have one type, or each its own.
static int64_t push_counts(Words* words, const int counts_[], MPI_Datatype type, const MPI_Datatype types[],
                           MPI_Comm comm, int size, int known)
{
  const size_t first = words->size;
  const int* world   = among(comm) || with_others ? NULL : members_of(comm).world;
  int64_t sum        = 0;
  for (int i = 0; i < size; i++)
    push(words, 0);
  for (int i = 0; known && i < size; i++) {
    const int64_t each = bytes(counts_[i], types ? types[i] : type);
    words->at[first + (size_t)(world ? world[i] : i)] = each;
    sum += each;
  }
  return sum;
}

static void exchanged(MPI_Comm comm, int in_place, const int out_counts[], MPI_Datatype out_type,
                      const MPI_Datatype out_types[], const int in_counts[], MPI_Datatype in_type,
                      const MPI_Datatype in_types[], Work* computed)
{
  Words key = {0}, got = {0};
  start_list(&key, ALLTOALLV, comm);
  const size_t sum = key.size;
  push(&key, 0);
  // The key moves while it grows.
  const int64_t sent = in_place ? push_counts(&key, in_counts, in_type, in_types, comm, members_of(comm).size, 1)
                                : push_counts(&key, out_counts, out_type, out_types, comm, members_of(comm).size, 1);
  key.at[sum]        = sent;
  const int64_t all  = push_counts(&got, in_counts, in_type, in_types, comm, members_of(comm).size, 1);
  push(&key, all);
  for (size_t i = 0; i < got.size; i++)
    push(&key, got.at[i]);
  free(got.at);
  add_list(&key, 2, computed);
}
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in,
            const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm),
           (out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm),
           exchanged(comm, out == MPI_IN_PLACE, out_counts, out_type, NULL, in_counts, in_type, NULL, &computed))
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void* out, const int out_counts[], const int out_at[], const MPI_Datatype out_types[], void* in,
            const int in_counts[], const int in_at[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm),
           exchanged(comm, out == MPI_IN_PLACE, out_counts, MPI_BYTE, out_types, in_counts, MPI_BYTE, in_types,
                     &computed))
COLLECTIVE(Allgatherv, Iallgatherv,
           (const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[], const int in_at[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, in_at, in_type, comm), Words key = {0};
           start_list(&key, ALLGATHERV, comm);
           push(&key, out == MPI_IN_PLACE ? bytes(in_counts[own_rank(comm)], in_type) : bytes(out_count, out_type));
           push_counts(&key, in_counts, in_type, NULL, comm, members_of(comm).size, 1);
           add_list(&key, 2, &computed))
COLLECTIVE(Gatherv, Igatherv,
           (const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[], const int in_at[],
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, in_at, in_type, root, comm), Words key = {0};
           start_list(&key, GATHERV, comm);
           push(&key, out == MPI_IN_PLACE ? bytes(in_counts[own_rank(comm)], in_type)
                                          : (root < 0 ? 0 : bytes(out_count, out_type)));
           push_counts(&key, in_counts, in_type, NULL, comm, members_of(comm).size, at_root(comm, root));
           push(&key, world_rank(comm, root));
           add_list(&key, 2, &computed))
COLLECTIVE(Scatterv, Iscatterv,
           (const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in, int in_count,
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_counts, out_at, out_type, in, in_count, in_type, root, comm), Words key = {0};
           start_list(&key, SCATTERV, comm);
           push_counts(&key, out_counts, out_type, NULL, comm, members_of(comm).size, at_root(comm, root));
           push(&key, in == MPI_IN_PLACE ? bytes(out_counts[own_rank(comm)], out_type)
                                         : (root < 0 ? 0 : bytes(in_count, in_type)));
           push(&key, world_rank(comm, root));
           add_list(&key, 2, &computed))
// Between two groups, the counts are those of the own one.
static int local_size(MPI_Comm comm)
{
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void* out, void* in, const int in_counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, in_counts, type, op, comm), Words key = {0};
           start_list(&key, REDUCESCATTER, comm);
           push_counts(&key, in_counts, type, NULL, comm, local_size(comm), 1);
           push(&key, 0);
           add_list(&key, 1, &computed))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, REDUCED, (out, in, count, type, op, comm), Words key = {0};
           start_list(&key, REDUCESCATTER, comm);
           for (int i = local_size(comm); i > 0; i--) push(&key, bytes(count, type));
           push(&key, 0);
           add_list(&key, 1, &computed))

// Operations among the neighbours of a topology are messages to and from each.
static int neighbours(MPI_Comm comm, int** sources, int** targets, int* to)
{
  int kind = MPI_UNDEFINED, from = 0, weighted, dimensions;
  *to = 0;
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_CART) {
    PMPI_Cartdim_get(comm, &dimensions);
    from = *to = 2 * dimensions;
  } else if (kind == MPI_GRAPH) {
    PMPI_Graph_neighbors_count(comm, own_rank(comm), &from);
    *to = from;
  } else if (kind == MPI_DIST_GRAPH)
    PMPI_Dist_graph_neighbors_count(comm, &from, to, &weighted);
  *sources = malloc(((size_t)from + 1) * sizeof **sources);
  *targets = malloc(((size_t)*to + 1) * sizeof **targets);
  int* weights = malloc(((size_t)from + (size_t)*to + 1) * sizeof *weights);
  if (kind == MPI_CART)
    for (int i = 0; i < dimensions; i++)
      PMPI_Cart_shift(comm, i, 1, &(*sources)[2 * i], &(*sources)[2 * i + 1]);
  else if (kind == MPI_GRAPH)
    PMPI_Graph_neighbors(comm, own_rank(comm), from, *sources);
  else if (kind == MPI_DIST_GRAPH)
    PMPI_Dist_graph_neighbors(comm, from, *sources, weights, *to, *targets, weights);
  if (kind != MPI_DIST_GRAPH)
    memcpy(*targets, *sources, (size_t)from * sizeof **sources);
  free(weights);
  return from;
}
#define NEIGHBOURS(function, begun_only, parameters, arguments, sent, got)                                             \
  COLLECTIVE(function, begun_only, parameters, arguments, int* sources; int* targets; int to;                          \
             const int from = neighbours(comm, &sources, &targets, &to);                                               \
             int64_t open   = 0;                                                                                       \
             for (int i = 0; i < from; i++) {                                                                          \
               ADD(computed, IRECV, 0, world_rank(comm, sources[i]), 0, got, BYTES);                                   \
               open += sources[i] >= 0;                                                                                \
             }                                                                                                         \
             for (int i = 0; i < to; i++) {                                                                            \
               ADD(computed, ISEND, 0, world_rank(comm, targets[i]), 0, sent, BYTES);                                  \
               open += targets[i] >= 0;                                                                                \
             }                                                                                                         \
             if (open) ADD(computed, WAITALL, 0, open);                                                                \
             free(sources);                                                                                            \
             free(targets))
NEIGHBOURS(Neighbor_allgather, Ineighbor_allgather, SHARED, SHARED_BY, bytes(out_count, out_type),
           bytes(in_count, in_type))
NEIGHBOURS(Neighbor_alltoall, Ineighbor_alltoall, SHARED, SHARED_BY, bytes(out_count, out_type),
           bytes(in_count, in_type))
NEIGHBOURS(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[], const int in_at[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, in_at, in_type, comm), bytes(out_count, out_type),
           bytes(in_counts[i], in_type))
NEIGHBOURS(Neighbor_alltoallv, Ineighbor_alltoallv,
           (const void* out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void* in,
            const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm),
           (out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm), bytes(out_counts[i], out_type),
           bytes(in_counts[i], in_type))
NEIGHBOURS(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void* out, const int out_counts[], const MPI_Aint out_at[], const MPI_Datatype out_types[], void* in,
            const int in_counts[], const MPI_Aint in_at[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm),
           bytes(out_counts[i], out_types[i]), bytes(in_counts[i], in_types[i]))
