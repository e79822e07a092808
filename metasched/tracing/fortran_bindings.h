// Open MPI's bindings for Fortran (mpif.h, mpi, mpi_f08) end in a library that calls PMPI_* of C, past the functions
// above. What that library calls is passed on to them; whatever else calls PMPI_* gets the true ones. MPICH's bindings
// call MPI_* themselves.
#include <dlfcn.h>
#include <mpi.h>
#ifdef OPEN_MPI
#include <link.h>
#include <stdint.h>
#include <string.h>

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

#define PASSED_ON_AS(result, passed, own, name, parameters, arguments)                                                 \
  result passed parameters                                                                                             \
  {                                                                                                                    \
    static result(*actual) parameters;                                                                                 \
    if (!actual)                                                                                                       \
      *(void**)&actual = dlsym(RTLD_NEXT, name);                                                                       \
    if (passing_on || !from_fortran(__builtin_return_address(0)))                                                      \
      return actual arguments;                                                                                         \
    passing_on          = 1;                                                                                           \
    const result status = own arguments;                                                                               \
    passing_on          = 0;                                                                                           \
    return status;                                                                                                     \
  }
#else
#define PASSED_ON_AS(result, passed, own, name, parameters, arguments)
#endif
#define PASSED_ON(function, parameters, arguments)                                                                     \
  PASSED_ON_AS(int, PMPI_##function, MPI_##function, "PMPI_" #function, parameters, arguments)
