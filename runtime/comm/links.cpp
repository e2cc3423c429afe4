#include "runtime/comm/links.h"

#include "runtime/comm/host_communicator.h"
#include "runtime/control/host_control.h"

namespace shardc {

auto MakeLinks(const Plan& plan, int64_t rank, ControlBlock& block, const SharedArenas& arenas, WaitOptions waits)
    -> Links {
  switch (plan.run.comm) {
    case Comm::Shm: {
      block.Join(rank);
      const auto member = std::make_shared<HostMember>(block, rank, std::move(waits));
      return {.control = std::make_unique<HostControl>(member),
              .communicator = std::make_unique<HostCommunicator>(member, arenas.Peers())};
    }
  }
  CHECK(false, "comm {}", static_cast<int>(plan.run.comm));
}

}  // namespace shardc
