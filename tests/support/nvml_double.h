// A double of NVML: the driver of GPUs as a test sets them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/device/nvml.h"

namespace shardc {

struct PlayedGpu {
  uint64_t clock_reasons = 0;
  unsigned milliwatts = 700'000;
  unsigned nvlinks = 18;
  unsigned nvlinks_up = 18;
  unsigned nvlink_mb_per_s = 26'562;
  unsigned pcie_lanes_up = 16;
  bool reaches_peers = true;
};

/// Takes the place of the library for as long as it lives; after it there is no library.
class NvmlDouble {
 public:
  explicit NvmlDouble(std::vector<PlayedGpu> gpus) {
    Gpus() = std::move(gpus);
    SetNvml(&Table);
  }
  NvmlDouble(const NvmlDouble&) = delete;
  auto operator=(const NvmlDouble&) -> NvmlDouble& = delete;
  ~NvmlDouble() { SetNvml(nullptr); }

  static auto AddressOf(size_t index) -> std::string { return fmt::format("0000:{:02x}:00.0", index); }
  auto gpu(size_t index) -> PlayedGpu& { return Gpus().at(index); }

 private:
  using Gpu = NvmlApi::Gpu;
  static constexpr int NotFound = 6;

  static auto Gpus() -> std::vector<PlayedGpu>& {
    static std::vector<PlayedGpu> gpus;
    return gpus;
  }
  static auto At(Gpu gpu) -> PlayedGpu& { return *reinterpret_cast<PlayedGpu*>(gpu); }
  template <class Value>
  static auto Tell(Value value, Value* out) -> int {
    *out = value;
    return NvmlApi::Success;
  }
  static auto Find(size_t index, Gpu* gpu) -> int {
    return index < Gpus().size() ? Tell(reinterpret_cast<Gpu>(&Gpus()[index]), gpu) : NotFound;
  }

  static constexpr NvmlApi Table{
      .init = [] { return NvmlApi::Success; },
      .count = [](unsigned* count) { return Tell(static_cast<unsigned>(Gpus().size()), count); },
      .gpu_by_index = [](unsigned index, Gpu* gpu) { return Find(index, gpu); },
      .gpu_by_address =
          [](const char* address, Gpu* gpu) {
            size_t index = 0;
            while (index < Gpus().size() && AddressOf(index) != address) {
              ++index;
            }
            return Find(index, gpu);
          },
      .clock_reasons = [](Gpu gpu, unsigned long long* reasons) -> int {
        *reasons = At(gpu).clock_reasons;
        return NvmlApi::Success;
      },
      .power_limit = [](Gpu gpu, unsigned* milliwatts) { return Tell(At(gpu).milliwatts, milliwatts); },
      .nvlink_state =
          [](Gpu gpu, unsigned link, int* is_up) {
            return link < At(gpu).nvlinks ? Tell(link < At(gpu).nvlinks_up ? 1 : 0, is_up) : NotFound;
          },
      .field_values = [](Gpu gpu, int, NvmlApi::FieldValue* value) -> int {
        value->result = value->field == NvmlApi::NvLinkSpeed && At(gpu).nvlinks > 0 ? NvmlApi::Success : NotFound;
        value->value = At(gpu).nvlink_mb_per_s;
        return NvmlApi::Success;
      },
      .peer_status = [](Gpu gpu, Gpu peer, int what, int* status) -> int {
        const bool can = what == NvmlApi::ReadPeer ? At(gpu).reaches_peers && At(peer).reaches_peers
                                                   : At(gpu).nvlinks_up > 0 && At(peer).nvlinks_up > 0;
        return Tell(can ? 0 : 1, status);
      },
      .most_pcie_generation = [](Gpu, unsigned* generation) { return Tell(5U, generation); },
      .most_pcie_width = [](Gpu, unsigned* lanes) { return Tell(16U, lanes); },
      .pcie_width = [](Gpu gpu, unsigned* lanes) { return Tell(At(gpu).pcie_lanes_up, lanes); },
  };
};

}  // namespace shardc
