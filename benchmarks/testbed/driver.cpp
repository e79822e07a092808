// Runs MPI jobs on a simulated cluster, several at once if asked: each job is an MPI_COMM_WORLD of its own.
//
//   driver PLATFORM.xml JOBS [energy]
//
// JOBS holds a line for each job: application, start time, problem size, then a host for each rank.  The answer on standard
// output is one line "job INDEX START END" for each job and one "phase INDEX PHASE RANK BEGIN END" for each marker pair; with the
// third argument one "energy INDEX JOULES STALLED" too: what the job's hosts consumed meanwhile by the plugin host_energy, and
// the seconds that its processes' processors waited for memory at full speed, summed over all.
#include <simgrid/plugins/energy.h>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
int apsp_main(int, char**);
int cg_main(int, char**);
int eigen_main(int, char**);
int fft_main(int, char**);
int is_main(int, char**);
int lu_main(int, char**);
int md_main(int, char**);
int mg_main(int, char**);
int poisson_main(int, char**);
int ssor_main(int, char**);
int summa_main(int, char**);
int sweep_main(int, char**);
int twophase_main(int, char**);
void phase_begin(int phase);
void phase_end(int phase);
void stalled(double flops);
void smpi_init_options(void); // of SimGrid: makes SMPI's own options known before SMPI_init reads them
}

namespace {
namespace s4u = simgrid::s4u;

const std::map<std::string, int (*)(int, char**)> APPLICATIONS = {
    {"apsp", apsp_main}, {"cg", cg_main}, {"eigen", eigen_main}, {"fft", fft_main},
    {"is", is_main}, {"lu", lu_main}, {"md", md_main}, {"mg", mg_main},
    {"poisson", poisson_main}, {"ssor", ssor_main}, {"summa", summa_main}, {"sweep", sweep_main},
    {"twophase", twophase_main}};

// Computation is injected, never timed, so that a run is the same to the last digit wherever it is simulated.  One fixed
// algorithm for each collective, so that none switches in the middle of a campaign; SimGrid's MPICH and MVAPICH2 selectors
// cannot build a communicator outside smpirun.  Flows share a link evenly (weight-S 0): with SimGrid's default weights, a
// link whose bandwidth changes also reweighs the flows that only acknowledge over it, until a weight falls below zero.
const std::vector<std::string> OPTIONS = {"network/model:SMPI",       "network/weight-S:0",
                                          "surf/precision:1e-9",      "smpi/host-speed:1Gf",
                                          "smpi/simulate-computation:no", "smpi/bcast:binomial_tree",
                                          "smpi/allreduce:rdb",       "smpi/allgather:ring",
                                          "smpi/allgatherv:ring",     "smpi/alltoall:ring",
                                          "smpi/alltoallv:ring"};

struct Job {
  std::string application, problem_size;
  double start = 0.0, end = 0.0;
  std::size_t finished = 0; // ranks
  std::vector<std::string> hosts;
  std::map<std::string, double> before; // joules of its hosts when it started
  double energy = 0.0;
};

bool metered = false;
std::map<int, double> stalls; // seconds by job

std::map<std::tuple<int, int, int>, std::pair<double, double>> phases; // (job, phase, rank) -> begin, end

std::tuple<int, int, int> marker(int phase)
{
  const auto self = s4u::Actor::self();
  return {std::stoi(self->get_property("instance_id")), phase, std::stoi(self->get_property("rank"))};
}

std::vector<Job> read_jobs(const char* path)
{
  std::vector<Job> jobs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Job job;
    words >> job.application >> job.start >> job.problem_size;
    for (std::string host; words >> host;)
      job.hosts.push_back(host);
    jobs.push_back(job);
  }
  return jobs;
}

// Ranks of a job on the node of a host: hosts are the processors n3.0, n3.1, ... of node n3.
std::size_t on_node(const Job& job, const std::string& host)
{
  const auto node = host.substr(0, host.find('.'));
  return std::count_if(job.hosts.begin(), job.hosts.end(),
                       [&node](const std::string& other) { return other.substr(0, other.find('.')) == node; });
}

void launch(Job& job, int index)
{
  const auto program     = APPLICATIONS.at(job.application);
  const std::string name = std::to_string(index);
  SMPI_app_instance_register(name.c_str(), nullptr, static_cast<int>(job.hosts.size()));
  for (std::size_t rank = 0; rank < job.hosts.size(); rank++) {
    auto actor = s4u::Actor::init(name + "." + std::to_string(rank), s4u::Host::by_name(job.hosts[rank]));
    actor->set_property("instance_id", name);
    actor->set_property("rank", std::to_string(rank));
    actor->set_property("on_node", std::to_string(on_node(job, job.hosts[rank])));
    actor->start([&job, program] {
      s4u::this_actor::sleep_until(job.start);
      if (metered && job.before.empty())
        for (const auto& host : job.hosts)
          job.before[host] = sg_host_get_consumed_energy(s4u::Host::by_name(host));
      std::string words[] = {job.application, job.problem_size};
      char* arguments[]   = {words[0].data(), words[1].data(), nullptr};
      program(2, arguments);
      job.end = std::max(job.end, s4u::Engine::get_clock());
      if (++job.finished == job.hosts.size() && metered)
        for (const auto& [host, joules] : job.before)
          job.energy += sg_host_get_consumed_energy(s4u::Host::by_name(host)) - joules;
    });
  }
}
} // namespace

void phase_begin(int phase)
{
  phases[marker(phase)].first = s4u::Engine::get_clock();
}

void phase_end(int phase)
{
  phases[marker(phase)].second = s4u::Engine::get_clock();
}

void stalled(double flops)
{
  const auto self = s4u::Actor::self();
  stalls[std::stoi(self->get_property("instance_id"))] += flops / self->get_host()->get_speed();
}

int main(int argc, char** argv)
{
  s4u::Engine engine(&argc, argv);
  smpi_init_options();
  for (const auto& option : OPTIONS)
    s4u::Engine::set_config(option);
  metered = argc == 4 && std::string(argv[3]) == "energy";
  if (argc != 3 && !metered) {
    std::cerr << "usage: driver PLATFORM.xml JOBS [energy]\n";
    return 2;
  }
  if (metered)
    sg_host_energy_plugin_init();
  engine.load_platform(argv[1]);
  SMPI_init();
  std::vector<Job> jobs = read_jobs(argv[2]);
  for (std::size_t index = 0; index < jobs.size(); index++)
    launch(jobs[index], static_cast<int>(index));
  engine.run();
  SMPI_finalize();

  for (const Job& job : jobs)
    if (job.finished < job.hosts.size()) { // the engine took a waiting rank for a deadlock and stopped
      std::cerr << job.application << ": only " << job.finished << " of " << job.hosts.size() << " ranks finished\n";
      return 1;
    }
  for (std::size_t index = 0; index < jobs.size(); index++)
    std::printf("job %zu %.9f %.9f\n", index, jobs[index].start, jobs[index].end);
  for (std::size_t index = 0; index < jobs.size() && metered; index++)
    std::printf("energy %zu %.9g %.9g\n", index, jobs[index].energy, stalls[static_cast<int>(index)]);
  for (const auto& [key, times] : phases)
    std::printf("phase %d %d %d %.9f %.9f\n", std::get<0>(key), std::get<1>(key), std::get<2>(key), times.first,
                times.second);
  return 0;
}
