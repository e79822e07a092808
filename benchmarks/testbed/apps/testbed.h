/* What the testbed's MPI programs share: injected computation whose rate falls out of cache, buffers without content,
 * and phase markers.  A program keeps no global variable, so that several of them can live in one simulation.
 *
 * A processor is described by three properties of its simulated host (see clusters.py): its speed, the cache that one
 * process can call its own, and its balance, the flops it could do in the time that memory takes to deliver a byte.  A
 * host with the property "streams" is on a node whose memory serves that many processes as fast as one; where more of a
 * job's processes are on the node, they wait for each other.
 */
#ifndef TESTBED_H
#define TESTBED_H

#include <math.h>
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/host.h>
#include <smpi/smpi.h>
#include <stdlib.h>

typedef struct {
  double cache;   /* bytes of cache that one process can call its own */
  double balance; /* flops that pass while memory delivers one byte */
} machine_t;

static inline machine_t machine_here(void)
{
  const_sg_host_t host = sg_host_self();
  machine_t here = {atof(sg_host_get_property_value(host, "cache")),
                    atof(sg_host_get_property_value(host, "balance"))};
  const char* streams = sg_host_get_property_value(host, "streams");
  if (streams)
    here.balance *= fmax(1.0, atof(sg_actor_get_property_value(sg_actor_self(), "on_node")) / atof(streams));
  return here;
}

/* Provided by the driver: so many of the operations that a process has just done were time that memory took. */
void stalled(double flops);

/* Spend the time of `flops`, each of which touches `bytes_per_flop` of a working set of `working_set` bytes.  The part of
 * the working set that does not fit in cache comes from memory, and the processor waits for it. */
static inline void compute(const machine_t* here, double flops, double working_set, double bytes_per_flop)
{
  double missing = working_set > here->cache ? 1.0 - here->cache / working_set : 0.0;
  if (flops > 0.0) {
    smpi_execute_flops(flops * (1.0 + here->balance * bytes_per_flop * missing));
    stalled(flops * here->balance * bytes_per_flop * missing);
  }
}

/* A buffer whose content nobody reads: the simulator moves its bytes in simulated time without copying them. */
static inline void* buffer(size_t bytes)
{
  return SMPI_SHARED_MALLOC(bytes > 0 ? bytes : 1);
}

static inline void release(void* block)
{
  SMPI_SHARED_FREE(block);
}

/* Items of `total` that belong to process `rank` of `size` in a balanced block distribution. */
static inline long share(long total, int rank, int size)
{
  return total / size + (rank < total % size);
}

/* Provided by the driver: this process begins phase `phase`; it has done its own work in the phase and would now wait. */
void phase_begin(int phase);
void phase_end(int phase);

#endif
