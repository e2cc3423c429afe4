#include "runtime/device/gpu_links.h"

#include "runtime/device/nvml.h"

namespace shardc {

static auto LinkOf(const NvmlApi& api, NvmlApi::Gpu gpu) -> GpuLink {
  GpuLink link;
  for (unsigned i = 0; i < NvmlApi::MaxNvLinks; ++i) {
    // Beyond the last one it fails.
    if (int is_up = 0; Tells(api.nvlink_state, gpu, i, &is_up)) {
      ++link.nvlinks;
      link.nvlinks_up += is_up == 0 ? 0 : 1;
    }
  }
  NvmlApi::FieldValue speed{.field = NvmlApi::NvLinkSpeed};
  if (Tells(api.field_values, gpu, 1, &speed) && speed.result == NvmlApi::Success) {
    link.nvlink_mb_per_s = static_cast<int64_t>(speed.value);
  }
  const auto ask = [gpu](auto* function) -> int64_t {
    unsigned number = 0;
    return Tells(function, gpu, &number) ? number : 0;
  };
  link.pcie_generation = ask(api.most_pcie_generation);
  link.pcie_lanes = ask(api.most_pcie_width);
  link.pcie_lanes_up = ask(api.pcie_width);
  return link;
}

auto MeasureGpuLinks() -> std::optional<GpuLinks> {
  const NvmlApi* const api = Nvml();
  unsigned count = 0;
  if (api == nullptr || !Tells(api->count, &count)) {
    return std::nullopt;
  }
  std::vector<NvmlApi::Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    if (NvmlApi::Gpu gpu = nullptr; Tells(api->gpu_by_index, i, &gpu)) {
      gpus.push_back(gpu);
    }
  }
  GpuLinks links;
  for (const NvmlApi::Gpu gpu : gpus) {
    links.gpus.push_back(LinkOf(*api, gpu));
    const auto can = [&](NvmlApi::Gpu peer, int what) {
      int status = -1;
      return Tells(api->peer_status, gpu, peer, what, &status) && status == 0 ? 1 : 0;
    };
    for (const NvmlApi::Gpu* peer = gpus.data(); *peer != gpu; ++peer) {
      ++links.pairs;
      links.pairs_that_reach += can(*peer, NvmlApi::ReadPeer);
      links.pairs_by_nvlink += can(*peer, NvmlApi::NvLinkPeer);
    }
  }
  return links;
}

}  // namespace shardc
