// Functions of MPI of which no action tells anything: their calls are counted by name and passed on as they came. Their
// time is that of communication.
#include "fortran_bindings.h"
#include "requests.h"

// Each argument, an integer or a pointer, comes in a word of its own, and none of these functions has more of them than
// these. So one form fits all; a label gives it the name that mpi.h declares with other types.
typedef intptr_t Word;
#define WORDS (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l, Word m)
#define BY_WORDS (a, b, c, d, e, f, g, h, i, j, k, l, m)
#define NOT_RECORDED(function)                                                                                         \
  Word words_P##function WORDS __asm__("P" #function) __attribute__((weak));                                           \
  Word words_##function WORDS __asm__(#function);                                                                      \
  PASSED_ON_AS(Word, words_P##function, words_##function, "P" #function, WORDS, BY_WORDS)                              \
  Word words_##function WORDS                                                                                          \
  {                                                                                                                    \
    static Unrecorded calls = {.name = #function};                                                                     \
    counted(&calls);                                                                                                     \
    const Work computed = entered();                                                                                   \
    const Word status   = words_P##function BY_WORDS;                                                                  \
    ended_owing(computed);                                                                                             \
    return status;                                                                                                     \
  }
#define WITH_LARGE_COUNTS(function) NOT_RECORDED(MPI_##function) NOT_RECORDED(MPI_##function##_c)

// Those of MPI-4 with counts beyond 2^31, and operations of all that are begun again and again.
#define LARGE_COUNTS(function) NOT_RECORDED(MPI_##function##_c)
#define OTHER_FORMS(function, begun_only)                                                                              \
  LARGE_COUNTS(function)                                                                                               \
  LARGE_COUNTS(begun_only)                                                                                             \
  WITH_LARGE_COUNTS(function##_init)                                                                                   \
  NOT_RECORDED(MPIX_##function##_init)
LARGE_COUNTS(Recv)
LARGE_COUNTS(Irecv)
LARGE_COUNTS(Recv_init)
LARGE_COUNTS(Mrecv)
LARGE_COUNTS(Imrecv)
LARGE_COUNTS(Sendrecv)
LARGE_COUNTS(Sendrecv_replace)
WITH_LARGE_COUNTS(Isendrecv)
WITH_LARGE_COUNTS(Isendrecv_replace)

// Partitioned communication.
NOT_RECORDED(MPI_Psend_init)
NOT_RECORDED(MPI_Precv_init)
NOT_RECORDED(MPI_Pready)
NOT_RECORDED(MPI_Pready_range)
NOT_RECORDED(MPI_Pready_list)
NOT_RECORDED(MPI_Parrived)

// One-sided communication.
WITH_LARGE_COUNTS(Win_create)
WITH_LARGE_COUNTS(Win_allocate)
WITH_LARGE_COUNTS(Win_allocate_shared)
NOT_RECORDED(MPI_Win_create_dynamic)
NOT_RECORDED(MPI_Win_free)
NOT_RECORDED(MPI_Win_fence)
NOT_RECORDED(MPI_Win_start)
NOT_RECORDED(MPI_Win_complete)
NOT_RECORDED(MPI_Win_post)
NOT_RECORDED(MPI_Win_wait)
NOT_RECORDED(MPI_Win_test)
NOT_RECORDED(MPI_Win_lock)
NOT_RECORDED(MPI_Win_unlock)
NOT_RECORDED(MPI_Win_lock_all)
NOT_RECORDED(MPI_Win_unlock_all)
NOT_RECORDED(MPI_Win_flush)
NOT_RECORDED(MPI_Win_flush_all)
NOT_RECORDED(MPI_Win_flush_local)
NOT_RECORDED(MPI_Win_flush_local_all)
NOT_RECORDED(MPI_Win_sync)
WITH_LARGE_COUNTS(Put)
WITH_LARGE_COUNTS(Get)
WITH_LARGE_COUNTS(Accumulate)
WITH_LARGE_COUNTS(Get_accumulate)
WITH_LARGE_COUNTS(Rput)
WITH_LARGE_COUNTS(Rget)
WITH_LARGE_COUNTS(Raccumulate)
WITH_LARGE_COUNTS(Rget_accumulate)
NOT_RECORDED(MPI_Fetch_and_op)
NOT_RECORDED(MPI_Compare_and_swap)

// Communicators are made by all of their processes together.
NOT_RECORDED(MPI_Comm_dup)
NOT_RECORDED(MPI_Comm_dup_with_info)
NOT_RECORDED(MPI_Comm_idup)
NOT_RECORDED(MPI_Comm_idup_with_info)
NOT_RECORDED(MPI_Comm_create)
NOT_RECORDED(MPI_Comm_create_group)
NOT_RECORDED(MPI_Comm_create_from_group)
NOT_RECORDED(MPI_Comm_split)
NOT_RECORDED(MPI_Comm_split_type)
NOT_RECORDED(MPI_Intercomm_create)
NOT_RECORDED(MPI_Intercomm_create_from_groups)
NOT_RECORDED(MPI_Intercomm_merge)
NOT_RECORDED(MPI_Cart_create)
NOT_RECORDED(MPI_Cart_sub)
NOT_RECORDED(MPI_Graph_create)
NOT_RECORDED(MPI_Dist_graph_create)
NOT_RECORDED(MPI_Dist_graph_create_adjacent)
NOT_RECORDED(MPIX_Comm_agree)
NOT_RECORDED(MPIX_Comm_revoke)
NOT_RECORDED(MPIX_Comm_shrink)

// Processes that the program starts, and other programs.
NOT_RECORDED(MPI_Comm_spawn)
NOT_RECORDED(MPI_Comm_spawn_multiple)
NOT_RECORDED(MPI_Comm_accept)
NOT_RECORDED(MPI_Comm_connect)
NOT_RECORDED(MPI_Comm_join)
NOT_RECORDED(MPI_Session_init)
NOT_RECORDED(MPI_Session_finalize)

// Files.
#define OF_FILES(function) WITH_LARGE_COUNTS(File_##function)
#define READ_AND_WRITTEN(way) OF_FILES(read##way) OF_FILES(write##way)
#define BEGUN_AND_ENDED(way)                                                                                           \
  READ_AND_WRITTEN(way##_begin)                                                                                        \
  NOT_RECORDED(MPI_File_read##way##_end)                                                                               \
  NOT_RECORDED(MPI_File_write##way##_end)
NOT_RECORDED(MPI_File_open)
NOT_RECORDED(MPI_File_close)
NOT_RECORDED(MPI_File_delete)
NOT_RECORDED(MPI_File_preallocate)
NOT_RECORDED(MPI_File_seek_shared)
NOT_RECORDED(MPI_File_set_size)
NOT_RECORDED(MPI_File_set_view)
NOT_RECORDED(MPI_File_sync)
READ_AND_WRITTEN()
READ_AND_WRITTEN(_all)
READ_AND_WRITTEN(_at)
READ_AND_WRITTEN(_at_all)
READ_AND_WRITTEN(_shared)
READ_AND_WRITTEN(_ordered)
BEGUN_AND_ENDED(_all)
BEGUN_AND_ENDED(_at_all)
BEGUN_AND_ENDED(_ordered)
OF_FILES(iread)
OF_FILES(iwrite)
OF_FILES(iread_all)
OF_FILES(iwrite_all)
OF_FILES(iread_at)
OF_FILES(iwrite_at)
OF_FILES(iread_at_all)
OF_FILES(iwrite_at_all)
OF_FILES(iread_shared)
OF_FILES(iwrite_shared)
