// Cores, by the mask of the calling thread: the machine's count is not what a job under taskset or a cpuset has.
#include "compiler/base/processor.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace shardc {

auto NumCores() -> int64_t {
  cpu_set_t cores;
  // It fails on machines with more cores than the mask has bits.
  const bool known = sched_getaffinity(0, sizeof(cores), &cores) == 0;
  return std::max<int64_t>(1, known ? CPU_COUNT(&cores) : std::thread::hardware_concurrency());
}

}  // namespace shardc
