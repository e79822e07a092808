// Communicators: which processes of the world their ranks name, and how many they have.
#include <mpi.h>

#include "folded_trace.h"

// The ranks of the world of the processes that a rank of a communicator may name; NULL where they are the same.
typedef struct {
  int size;
  const int* world;
} Members;
typedef struct {
  MPI_Comm comm;
  Members members; // of the other group, between two groups
  int between_groups;
  int with_others; // some are of another world
  int64_t number; // of its processes, where they are not all
} Communicator;
static Communicator* communicators;
static size_t communicators_size, probes_size;
static int64_t open_receives; // requests that need the members of their communicator, though it be freed

static const Communicator* communicator(MPI_Comm comm)
{
  for (size_t i = 0; i < communicators_size; i++)
    if (communicators[i].comm == comm)
      return &communicators[i];
  int between = 0, size = 0, own_size = 0;
  MPI_Group group = MPI_GROUP_NULL, world;
  PMPI_Comm_test_inter(comm, &between);
  PMPI_Comm_size(comm, &own_size);
  if (between)
    PMPI_Comm_remote_group(comm, &group);
  else
    PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_size(group, &size);
  int* own      = malloc((size_t)size * sizeof *own);
  int* them     = malloc((size_t)size * sizeof *them);
  communicators = realloc(communicators, (communicators_size + 1) * sizeof *communicators);
  if (!own || !them || !communicators)
    abort();
  for (int i = 0; i < size; i++)
    own[i] = i;
  PMPI_Group_translate_ranks(group, size, own, world, them);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  free(own);
  int others = 0;
  for (int i = 0; i < size; i++)
    others |= them[i] == MPI_UNDEFINED;
  const int64_t number = between ? own_size + size : size == processes ? 0 : size;
  communicators[communicators_size++] = (Communicator){comm, {size, them}, between, others, number};
  return &communicators[communicators_size - 1];
}

// Another communicator may get the handle of one that is freed.
static void forget_communicator(MPI_Comm comm)
{
  for (size_t i = 0; i < communicators_size; i++)
    if (communicators[i].comm == comm) {
      if (!open_receives && !probes_size)
        free((int*)communicators[i].members.world);
      communicators[i] = communicators[--communicators_size];
      return;
    }
}

static Members members_of(MPI_Comm comm)
{
  return comm == MPI_COMM_WORLD || rank < 0 ? (Members){processes, NULL} : communicator(comm)->members;
}

static int64_t rank_among(Members members, int peer)
{
  if (peer == MPI_ROOT)
    return rank;
  const int known = peer >= 0 && peer < members.size ? (members.world ? members.world[peer] : peer) : NULL_RANK;
  with_others |= known == MPI_UNDEFINED;
  return known < 0 ? NULL_RANK : known;
}

static int64_t world_rank(MPI_Comm comm, int peer)
{
  return rank_among(members_of(comm), peer);
}

static int64_t among(MPI_Comm comm)
{
  if (comm == MPI_COMM_WORLD)
    return 0;
  const Communicator* found = communicator(comm);
  with_others |= found->with_others;
  return found->number;
}

static int own_rank(MPI_Comm comm)
{
  int own = -1;
  PMPI_Comm_rank(comm, &own);
  return own;
}

static int at_root(MPI_Comm comm, int root)
{
  if (root == MPI_ROOT)
    return 1;
  return own_rank(comm) == root && (comm == MPI_COMM_WORLD || !communicator(comm)->between_groups);
}
