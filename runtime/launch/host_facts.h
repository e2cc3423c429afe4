// What a host is and has, as far as a run asks for it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardc {

/// Returns one object: host, shardc, libtorch, kernel, launcher, address, interfaces, cores, memory, limits, gpus, and
/// gpu_links if NVIDIA's driver tells them. Sizes in bytes.
auto HostFacts(const std::string& torch_version, const std::string& launcher, const std::string& address)
    -> nlohmann::ordered_json;

}  // namespace shardc
