#include "runtime/launch/host_facts.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compiler/base/child_output.h"
#include "compiler/base/host_and_time.h"
#include "compiler/base/processor.h"
#include "compiler/base/version.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/family.h"
#include "runtime/device/gpu_links.h"
#include "runtime/device/nvidia_driver.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Returns the interfaces that are up and reach other hosts, with their addresses.
static auto Interfaces() -> Json {
  Json json = Json::object();
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    return json;
  }
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    const bool is_ip =
        at->ifa_addr != nullptr && (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
    if (!is_ip || (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    char host[NI_MAXHOST];
    const socklen_t size = at->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(at->ifa_addr, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) == 0) {
      json[at->ifa_name].push_back(host);
    }
  }
  freeifaddrs(all);
  return json;
}

/// Returns the limit of a resource; -1 if it is unlimited.
static auto LimitOf(int resource) -> int64_t {
  rlimit limit{};
  return getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
             ? -1
             : static_cast<int64_t>(limit.rlim_cur);
}

/// Returns the versions of the libraries for GPUs, by name; none in a program without them. A child asks: a library
/// that lacks a part of itself ends the process that calls it.
static auto GpuLibraries() -> Json {
  const FamilyParts& parts = PartsOf(DeviceFamily::Cuda);
  if (parts.versions == nullptr) {
    return Json::object();
  }
  const auto output = ReadChild([&](int pipe) {
    auto versions = parts.versions();
    // Told apart from these.
    versions.erase("card");
    versions.erase("driver");
    if (const auto nccl = parts.nccl().Version()) {
      versions["nccl"] = *nccl;
    }
    const std::string text = Json(versions).dump();
    return write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  });
  Json versions = output && output->ended_well ? Json::parse(output->text, nullptr, false) : Json();
  return versions.is_object() ? versions : Json{{"error", "a library of CUDA, cuDNN or NCCL is not whole"}};
}

static auto JsonOf(const GpuLinks& links) -> Json {
  Json json{{"gpus", Json::array()},
            {"pairs", links.pairs},
            {"pairs_that_reach", links.pairs_that_reach},
            {"pairs_by_nvlink", links.pairs_by_nvlink}};
  for (const GpuLink& gpu : links.gpus) {
    json["gpus"].push_back({{"nvlinks", gpu.nvlinks},
                            {"nvlinks_up", gpu.nvlinks_up},
                            {"nvlink_mb_per_s", gpu.nvlink_mb_per_s},
                            {"pcie_generation", gpu.pcie_generation},
                            {"pcie_lanes", gpu.pcie_lanes},
                            {"pcie_lanes_up", gpu.pcie_lanes_up}});
  }
  return json;
}

auto HostFacts(const std::string& torch_version, const std::string& launcher, const std::string& address)
    -> nlohmann::ordered_json {
  utsname kernel{};
  uname(&kernel);
  Json json;
  json["host"] = HostName();
  json["shardc"] = ProgramVersion();
  json["libtorch"] = torch_version;
  json["kernel"] = kernel.release;
  json["launcher"] = launcher;
  json["address"] = address;
  json["interfaces"] = Interfaces();
  json["cores"] = NumCores();
  json["memory_available"] = MeasureAvailableMemory().bytes.value;
  json["limits"] = {{"open_files", LimitOf(RLIMIT_NOFILE)},
                    {"processes", LimitOf(RLIMIT_NPROC)},
                    {"locked_memory", LimitOf(RLIMIT_MEMLOCK)},
                    {"file_size", LimitOf(RLIMIT_FSIZE)}};
  json["gpus"] = NvidiaGpuModels();
  if (const auto links = MeasureGpuLinks()) {
    json["gpu_links"] = JsonOf(*links);
  }
  json["nvidia_driver"] = NvidiaDriverVersion();
  json["gpu_libraries"] = GpuLibraries();
  return json;
}

}  // namespace shardc
