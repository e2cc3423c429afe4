// The CUDA family without a GPU, for tests: its kernels run emulated, from the files that nvcc compiles; products are
// those of the reference, and elements of init rules are made by the host's kernels. The device's addresses are of no
// memory of the host: kernels, and copies by queues, find theirs elsewhere, so any other access ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/product_double.h"

#include "runtime/device/device.h"

namespace shardc {

/// Registers the emulated family, whose ranks may be several, as threads or processes, on one host or several, which
/// exchange by TheNcclDouble. Called when the program begins.
auto UseEmulatedCuda() -> void;

/// Returns the versions that the family tells from now on; none at first.
auto EmulatedVersions() -> std::map<std::string, std::string>&;
/// Returns the memory that devices tell from now on; none at first.
auto EmulatedMemory() -> std::optional<DeviceMemory>&;

/// Returns the products that benches of the family have from now on; none at first.
auto EmulatedProducts() -> std::vector<TimedProduct>&;

/// Counts of what graphs did in ranks that are threads.
struct GraphLog {
  std::atomic<int64_t> recorded = 0;
  std::atomic<int64_t> turns = 0;
  std::mutex mutex;
  /// Mnemonics of the ops that were repeated.
  std::set<std::string> ops;
};
auto EmulatedGraphLog() -> GraphLog&;

}  // namespace shardc
